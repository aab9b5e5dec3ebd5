#include "transport/copy/done_jobs.h"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace wb {

absl::Status DoneJobs::Open() {
  fd_ = FdHandle(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return fd_ ? absl::OkStatus() : absl::ErrnoToStatus(errno, "copier: eventfd");
}

void DoneJobs::Add(CopyJob job) {
  {
    const MutexLock lock(mu_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() > 1) return;  // the first one makes the descriptor readable
  }
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable all the same.
  static_cast<void>(!write(fd_.get(), &one, sizeof(one)));
}

std::size_t DoneJobs::TakeAll(std::vector<CopyJob>& done) {
  std::uint64_t count = 0;
  static_cast<void>(!read(fd_.get(), &count, sizeof(count)));
  const MutexLock lock(mu_);
  const std::size_t taken = jobs_.size();
  for (CopyJob& job : jobs_) done.push_back(std::move(job));
  jobs_.clear();
  return taken;
}

}  // namespace wb
