#pragma once

#include <optional>
#include <utility>

#include "absl/status/statusor.h"

#include "planner/base/fd_handle.h"

namespace wb {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end this process: they wait to be
/// taken (those that were ignored stay so). So that what has to be cleaned up is, declare it before
/// that. SIGPIPE is ignored from then on: writes fail instead. Made on the main thread before any
/// other exists; one at a time. Signals not taken act as ever when it ends. Move-only.
class StopSignals {
 public:
  static absl::StatusOr<StopSignals> Block();
  ~StopSignals();
  StopSignals(StopSignals&&) noexcept = default;
  StopSignals& operator=(StopSignals&&) = delete;
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Readable when there is one to take.
  int fd() const { return fd_.get(); }
  std::optional<int> Take() const;

 private:
  explicit StopSignals(FdHandle fd) : fd_(std::move(fd)) {}
  FdHandle fd_;  // empty: moved from
};

}  // namespace wb
