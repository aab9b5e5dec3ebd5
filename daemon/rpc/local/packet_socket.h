#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "planner/base/fd_handle.h"

namespace wb {

/// The largest packet of the local door, in bytes.
inline constexpr std::size_t kMaxPacketBytes = std::size_t{64} * 1024;

/// One packet as it came: its bytes lie in the caller's buffer, its descriptors are owned here.
struct Packet {
  std::string_view bytes;
  std::vector<FdHandle> descriptors;
  bool bytes_cut = false;         // it was larger than kMaxPacketBytes
  bool descriptors_cut = false;   // it carried more descriptors than anyone may ask for
  bool descriptors_lost = false;  // it carried more descriptors than this process may open
};

enum class ReceiveOutcome : std::uint8_t { kPacket, kNothingYet, kClosed };

/// Who is at the other end, as the kernel saw it at connect.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// A non-blocking AF_UNIX SOCK_SEQPACKET socket, a call each. Descriptors are received with
// MSG_CMSG_CLOEXEC, sends never raise SIGPIPE. Stateless; thread-safe.

/// Binds `path` (claimed in the run directory), sets its mode to 0660 and listens.
[[nodiscard]] absl::StatusOr<FdHandle> ListenPackets(const std::string& path);

/// The next packet, into `buffer` of kMaxPacketBytes. An empty packet counts as closed: the
/// kernel gives no way to tell them apart. An error is one of the socket.
[[nodiscard]] absl::StatusOr<ReceiveOutcome> ReceivePacket(int socket,
                                                           std::span<char> buffer,
                                                           Packet& packet);

enum class SendOutcome : std::uint8_t { kSent, kNoRoom, kClosed };
[[nodiscard]] absl::StatusOr<SendOutcome> SendPacket(int socket, std::string_view bytes);

[[nodiscard]] PeerCredentials CredentialsOf(int socket);

/// RESOURCE_EXHAUSTED that names RLIMIT_NOFILE and its value.
[[nodiscard]] absl::Status NoDescriptorsLeft();

/// A descriptor that is readable once the process that connected has ended, whoever else holds its
/// end by then. NOT_FOUND when it has ended already, RESOURCE_EXHAUSTED when this process may open
/// no more, UNAVAILABLE with the reason where it cannot be known (an old kernel and another PID
/// namespace, or a seccomp profile).
[[nodiscard]] absl::StatusOr<FdHandle> OpenPeerProcess(int socket);

}  // namespace wb
