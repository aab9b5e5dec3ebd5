#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "client/src/deadline.h"
#include "client/src/errors.h"
#include "planner/base/fd_handle.h"

namespace wb::client {

/// The largest packet of the local door, either way.
inline constexpr std::size_t kMaxPacketBytes = 65'536;

/// The process at the other end, as it was at connect.
struct PeerProcess {
  FdHandle handle;  // readable once it has ended; none where that cannot be known
  pid_t pid = 0;    // 0: of another PID namespace
};

/// A connected AF_UNIX SOCK_SEQPACKET socket. Never raises SIGPIPE, never waits past a deadline.
/// After an error the connection is of no further use, but packets that had arrived can still be
/// taken. Its end is the connection's, whoever else holds it, as children after fork do; in such a
/// child it ends nothing.
class PacketSocket {
 public:
  /// UNAVAILABLE or PERMISSION_DENIED names ENOENT, EACCES, ECONNREFUSED, ... at once;
  /// DEADLINE_EXCEEDED if the daemon does not accept in time. The caller names the path.
  static Result<PacketSocket> Connect(const std::string& path, Deadline deadline);
  PacketSocket(PacketSocket&& other) noexcept = default;
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;
  PacketSocket& operator=(PacketSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(process_, other.process_);
    std::swap(peer_, other.peer_);
    std::swap(reset_, other.reset_);
    return *this;
  }
  ~PacketSocket() {
    if (fd_ && ::getpid() == process_) ::shutdown(fd_.get(), SHUT_RDWR);
  }

  /// One packet, with `attachment` by SCM_RIGHTS unless it is negative.
  Result<void> Send(std::string_view packet, int attachment, Deadline deadline);
  /// The next packet. UNAVAILABLE: the other end is closed.
  Result<std::string> Receive(Deadline deadline);
  PeerProcess TakePeer() { return std::move(peer_); }

 private:
  explicit PacketSocket(FdHandle fd);
  Result<void> WaitFor(short events, Deadline deadline);

  FdHandle fd_;
  PeerProcess peer_;
  pid_t process_ = ::getpid();
  bool reset_ = false;  // ECONNRESET has been seen
};

}  // namespace wb::client
