#include "daemon/rpc/local/packet_socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "planner/base/peer_process.h"

namespace wb {
namespace {

constexpr int kBacklog = 64;
// No message carries more than one; room for a few tells "too many" from "cut by the kernel".
constexpr std::size_t kMaxDescriptors = 4;
constexpr mode_t kSocketMode = 0660;

absl::Status Failed(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::generic_category().message(errno)));
}

/// Takes ownership of every descriptor that came with the message.
void TakeDescriptors(msghdr& header, Packet& packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      packet.descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

absl::StatusOr<FdHandle> ListenPackets(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has ", path.size(),
                                                   " bytes, a socket's path at most ",
                                                   sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  FdHandle socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return Failed("cannot make a socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed("cannot bind " + path);
  }
  // Nobody can connect before listen, so the mode of bind's umask is never in force.
  if (::chmod(path.c_str(), kSocketMode) != 0) return Failed("cannot set the mode of " + path);
  if (::listen(socket.get(), kBacklog) != 0) return Failed("cannot listen on " + path);
  return socket;
}

absl::StatusOr<ReceiveOutcome> ReceivePacket(int socket, std::span<char> buffer, Packet& packet) {
  packet = Packet{};
  iovec data{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN) return ReceiveOutcome::kNothingYet;
    if (errno == ECONNRESET) return ReceiveOutcome::kClosed;
    return Failed("cannot receive");
  }
  TakeDescriptors(header, packet);
  if (got == 0) return ReceiveOutcome::kClosed;
  packet.bytes = std::string_view(buffer.data(), static_cast<std::size_t>(got));
  packet.bytes_cut = (header.msg_flags & MSG_TRUNC) != 0;
  const bool cut = (header.msg_flags & MSG_CTRUNC) != 0;
  // The kernel cuts for want of room in `control`, or of a free number for the next descriptor.
  packet.descriptors_cut = cut && packet.descriptors.size() == kMaxDescriptors;
  packet.descriptors_lost = cut && !packet.descriptors_cut;
  return ReceiveOutcome::kPacket;
}

absl::StatusOr<SendOutcome> SendPacket(int socket, std::string_view bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return SendOutcome::kSent;
  if (errno == EAGAIN || errno == ENOBUFS) return SendOutcome::kNoRoom;
  if (errno == EPIPE || errno == ECONNRESET) return SendOutcome::kClosed;
  return Failed("cannot send");
}

PeerCredentials CredentialsOf(int socket) {
  const ucred found = PeerCredentialsOf(socket);
  return {found.pid, found.uid, found.gid};
}

absl::Status NoDescriptorsLeft() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return absl::ResourceExhaustedError(
      absl::StrCat("this daemon has no descriptors left: it may open ",
                   known ? absl::StrCat(limit.rlim_cur) : "?", " (RLIMIT_NOFILE)"));
}

absl::StatusOr<FdHandle> OpenPeerProcess(int socket) {
  FdHandle opened = OpenProcessOfPeer(socket);
  if (opened) return opened;
  if (errno == ESRCH) return absl::NotFoundError("the process that connected has ended");
  if (errno == EMFILE) return NoDescriptorsLeft();
  return Failed("cannot open the process that connected");
}

}  // namespace wb
