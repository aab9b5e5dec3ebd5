#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "planner/base/fd_handle.h"

namespace wb {

/// One end of a connection between a process and its child: whole messages, in order
/// (SOCK_SEQPACKET). Thread-compatible, move-only.
class ControlChannel {
 public:
  /// The two ends of a new one.
  static absl::StatusOr<std::pair<ControlChannel, ControlChannel>> CreatePair();
  explicit ControlChannel(FdHandle fd) : fd_(std::move(fd)) {}

  /// Longer messages are refused by Send.
  static constexpr std::size_t kMaxMessageBytes = std::size_t{64} * 1024;

  int fd() const { return fd_.get(); }
  /// Never blocks: UNAVAILABLE when the other end is gone or does not read.
  absl::Status Send(const std::string& message) const;
  /// The next message, without waiting; "" when there is none. CANCELLED when the other end is
  /// closed.
  absl::StatusOr<std::string> Receive() const;

 private:
  FdHandle fd_;
};

}  // namespace wb
