#include "transport/copy/copy_pool.h"

#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/base/mutex.h"
#include "planner/base/status_macros.h"
#include "transport/copy/done_jobs.h"

namespace wb {
namespace {

constexpr int kMaxThreads = 256;
constexpr std::chrono::hours kIdleWait{1};  // a thread without work looks up now and then

/// First in, first out, in one vector whose memory is kept. It grows only when full of jobs that
/// wait: a queue that is never empty for long does not creep.
class JobQueue {
 public:
  bool empty() const { return next_ == jobs_.size(); }
  void Push(CopyJob job) {
    if (next_ > jobs_.size() / 2) {
      jobs_.erase(jobs_.begin(), jobs_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
    jobs_.push_back(std::move(job));
  }
  CopyJob Pop() { return std::move(jobs_[next_++]); }

 private:
  std::vector<CopyJob> jobs_;
  std::size_t next_ = 0;
};

}  // namespace

struct CopyPool::State {
  DoneJobs done;
  std::size_t pending = 0;  // the owner's thread only

  Mutex mu;
  CondVar work;
  JobQueue queue ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;

  std::vector<std::thread> threads;

  /// False when the pool ends.
  bool Next(CopyJob& job) {
    const MutexLock lock(mu);
    while (queue.empty() && !stopping) {
      work.WaitUntil(mu, std::chrono::steady_clock::now() + kIdleWait);
    }
    if (stopping) return false;
    job = queue.Pop();
    return true;
  }

  void Work() {
    CopyJob job;
    while (Next(job)) {
      RunOnHost(job);
      done.Add(std::move(job));
    }
  }
};

absl::StatusOr<std::unique_ptr<CopyPool>> CopyPool::Create(int threads) {
  if (threads < 0 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy pool: ", threads, " threads, want 0 to ", kMaxThreads));
  }
  std::unique_ptr<CopyPool> pool(new CopyPool());
  pool->state_ = std::make_unique<State>();
  State& state = *pool->state_;
  WB_RETURN_IF_ERROR(state.done.Open());
  try {
    for (int i = 0; i < threads; ++i) state.threads.emplace_back([&state] { state.Work(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("copy pool: cannot start thread ",
                                                     state.threads.size() + 1, " of ", threads,
                                                     ": ", error.what()));
  }
  return pool;
}

CopyPool::~CopyPool() {
  if (state_ == nullptr) return;
  {
    const MutexLock lock(state_->mu);
    state_->stopping = true;
  }
  state_->work.NotifyAll();
  for (std::thread& thread : state_->threads) thread.join();
}

void CopyPool::Submit(CopyJob job) {
  ++state_->pending;
  if (state_->threads.empty()) {
    RunOnHost(job);
    state_->done.Add(std::move(job));
    return;
  }
  {
    const MutexLock lock(state_->mu);
    state_->queue.Push(std::move(job));
  }
  state_->work.NotifyAll();
}

void CopyPool::TakeDone(std::vector<CopyJob>& done) {
  state_->pending -= state_->done.TakeAll(done);
}

int CopyPool::completion_fd() const {
  return state_->done.fd();
}

std::size_t CopyPool::pending() const {
  return state_->pending;
}

}  // namespace wb
