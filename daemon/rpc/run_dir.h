#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sys/un.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "planner/base/fd_handle.h"

namespace wb {

/// The daemon's run directory, held by an flock on its file `lock`.
///
/// Invariant: while it lives, no other daemon holds the directory, so a socket found in it is a
/// dead one. The lock file itself is never removed: a second daemon could lock the removed one.
/// The sockets that were claimed are removed at the end. Thread-compatible.
class RunDir {
 public:
  /// Of the path, so that the path of each socket in it is one (unix(7)).
  static constexpr std::size_t kMaxPathBytes =
      sizeof(sockaddr_un::sun_path) - 1 - std::string_view("/control.sock").size();

  /// Creates the directory (0750) where it is missing; its parent must exist. FAILED_PRECONDITION
  /// names the daemon that holds it, or what stands in the way.
  static absl::StatusOr<RunDir> Open(const std::string& path);

  RunDir(RunDir&& other) noexcept = default;
  RunDir& operator=(RunDir&& other) = delete;
  RunDir(const RunDir&) = delete;
  RunDir& operator=(const RunDir&) = delete;
  ~RunDir();

  /// The path for a socket called `name`, with a stale socket of that name removed. Anything else
  /// of that name is refused and left as it is.
  absl::StatusOr<std::string> ClaimSocket(const std::string& name);

 private:
  RunDir(std::string path, FdHandle lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  FdHandle lock_;
  std::vector<std::string> sockets_;  // paths claimed
};

}  // namespace wb
