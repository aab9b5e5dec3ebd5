#include "client/wbctl/process/control_channel.h"

#include <array>
#include <cerrno>

#include <sys/socket.h>

#include "absl/strings/str_cat.h"

namespace wb {

absl::StatusOr<std::pair<ControlChannel, ControlChannel>> ControlChannel::CreatePair() {
  std::array<int, 2> fds{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a control channel");
  }
  return std::pair(ControlChannel(FdHandle(fds[0])), ControlChannel(FdHandle(fds[1])));
}

absl::Status ControlChannel::Send(const std::string& message) const {
  if (message.size() > kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a control message of ", message.size(),
                                                   " bytes, want at most ", kMaxMessageBytes));
  }
  const ssize_t sent =
      ::send(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("control channel: ", absl::ErrnoToStatus(errno, "send").message()));
}

absl::StatusOr<std::string> ControlChannel::Receive() const {
  std::string message(kMaxMessageBytes, '\0');
  const ssize_t got = ::recv(fd_.get(), message.data(), message.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::string();
  if (got == 0 || (got < 0 && errno == ECONNRESET)) {
    return absl::CancelledError("control channel: the other end is closed");
  }
  if (got < 0) return absl::ErrnoToStatus(errno, "control channel: recv");
  message.resize(static_cast<std::size_t>(got));
  return message;
}

}  // namespace wb
