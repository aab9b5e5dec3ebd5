#include "client/src/packet_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "planner/base/peer_process.h"

namespace wb::client {
namespace {

Error Late(std::string what) {
  return Error{WB_DEADLINE_EXCEEDED, std::move(what), {}};
}

/// connect() itself waits, at most this long, while the daemon's backlog is full.
Result<void> BoundConnect(int fd, Deadline deadline) {
  const Milliseconds left = std::max(Remaining(deadline), Milliseconds(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(left - seconds);
  const timeval bound{seconds.count(), micros.count()};
  if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound)) != 0) {
    return SystemError(errno, "setsockopt(SO_SNDTIMEO)");
  }
  return {};
}

/// Where nobody listens, says what to look for.
Error NoDaemon(int error) {
  Error failed = SystemError(error, "connect");
  if (error == ENOENT || error == ECONNREFUSED) {
    failed.message += "; is a weightbridged running with this run_dir?";
  }
  return failed;
}

/// The control message that carries one descriptor.
union Attachment {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

void Attach(int fd, Attachment& attachment, msghdr& message) {
  std::memset(&attachment, 0, sizeof(attachment));
  message.msg_control = attachment.bytes;
  message.msg_controllen = sizeof(attachment.bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
}

Error SendError(int error, int attachment) {
  const bool with_memory = attachment >= 0 && error != EPIPE && error != ECONNRESET;
  Error failed = SystemError(error, with_memory ? "sendmsg with SCM_RIGHTS" : "sendmsg");
  // Of a connected socket's own it has none of these: something forbids the call.
  if (error == EPERM || error == EACCES || error == ENOSYS) {
    failed.code = WB_UNAVAILABLE;
    failed.message +=
        "; memory is handed to the daemon as a descriptor over the worker socket: "
        "allow sendmsg with SCM_RIGHTS in this process's seccomp profile";
  }
  return failed;
}

/// A packet of `bytes`, received into `packet` as far as it fits.
Result<std::string> Whole(std::string packet, std::size_t bytes) {
  if (bytes == 0) return Error{WB_UNAVAILABLE, "the connection is closed", {}};
  if (bytes > packet.size()) {
    return Error{WB_INTERNAL,
                 "a packet of " + std::to_string(bytes) + " bytes, want at most " +
                     std::to_string(packet.size()),
                 {}};
  }
  packet.resize(bytes);
  return packet;
}

}  // namespace

PacketSocket::PacketSocket(FdHandle fd)
    : fd_(std::move(fd)), peer_{OpenProcessOfPeer(fd_.get()), PeerCredentialsOf(fd_.get()).pid} {}

Result<PacketSocket> PacketSocket::Connect(const std::string& path, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error{WB_INVALID_ARGUMENT,
                 "the path has " + std::to_string(path.size()) + " bytes, want at most " +
                     std::to_string(sizeof(address.sun_path) - 1),
                 {}};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  FdHandle fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return SystemError(errno, "socket(AF_UNIX, SOCK_SEQPACKET)");
  if (Result<void> bound = BoundConnect(fd.get(), deadline); !bound.ok()) return bound.error();
  const auto* raw = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  while (::connect(fd.get(), raw, sizeof(address)) != 0) {
    const int error = errno;
    if (error == EINTR && Remaining(deadline) > Milliseconds::zero()) continue;
    if (error == EAGAIN || error == EINTR) return Late("the daemon did not accept in time");
    return NoDaemon(error);
  }
  return PacketSocket(std::move(fd));
}

Result<void> PacketSocket::WaitFor(short events, Deadline deadline) {
  while (true) {
    const auto most = Milliseconds(std::numeric_limits<int>::max());
    pollfd poll_fd{fd_.get(), events, 0};
    const int ready =
        ::poll(&poll_fd, 1, static_cast<int>(std::min(Remaining(deadline), most).count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return SystemError(errno, "poll");
    if (Remaining(deadline) == Milliseconds::zero()) return Late("no answer in time");
  }
}

Result<void> PacketSocket::Send(std::string_view packet, int attachment, Deadline deadline) {
  // sendmsg does not write to it; iovec knows no const.
  iovec part{const_cast<char*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Attachment control;
  if (attachment >= 0) Attach(attachment, control, message);
  while (::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return SendError(errno, attachment);
    if (Result<void> ready = WaitFor(POLLOUT, deadline); !ready.ok()) return ready;
  }
  return {};
}

Result<std::string> PacketSocket::Receive(Deadline deadline) {
  std::string packet(kMaxPacketBytes, '\0');
  while (true) {
    const ssize_t got = ::recv(fd_.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (got >= 0) return Whole(std::move(packet), static_cast<std::size_t>(got));
    const int error = errno;
    if (error == EINTR) continue;
    // A peer that closed with our packets unread makes us see ECONNRESET, once; what it had sent
    // before, a refusal for example, is behind that.
    if (error == ECONNRESET && !std::exchange(reset_, true)) continue;
    if (error != EAGAIN) return SystemError(error, "recv");
    if (Result<void> ready = WaitFor(POLLIN, deadline); !ready.ok()) return ready.error();
  }
}

}  // namespace wb::client
