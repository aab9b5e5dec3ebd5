#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

#include "planner/base/fd_handle.h"
#include "planner/base/mutex.h"
#include "transport/copy/copier.h"

namespace wb {

/// The way back of a copier's jobs: from the threads that have done them to the loop that sleeps on
/// `fd`. Thread-safe once it is open.
class DoneJobs {
 public:
  /// Makes `fd`. Once, before any other call.
  absl::Status Open();
  void Add(CopyJob job) ABSL_LOCKS_EXCLUDED(mu_);
  /// Appends all to `done` and makes `fd` unreadable; how many they are.
  std::size_t TakeAll(std::vector<CopyJob>& done) ABSL_LOCKS_EXCLUDED(mu_);
  int fd() const { return fd_.get(); }

 private:
  FdHandle fd_;
  Mutex mu_;
  std::vector<CopyJob> jobs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace wb
