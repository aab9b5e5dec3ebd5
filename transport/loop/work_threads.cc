#include "transport/loop/work_threads.h"

#include <chrono>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "planner/base/mutex.h"

namespace wb {
namespace {

// Of a wait for work, which is then begun again: no wait is without an end.
constexpr std::chrono::seconds kLook{60};

}  // namespace

struct WorkThreads::State {
  /// The next task; null when there will be none.
  std::function<void()> Next() {
    const MutexLock lock(mu);
    while (tasks.empty() && !stopping) {
      static_cast<void>(changed.WaitUntil(mu, std::chrono::steady_clock::now() + kLook));
    }
    if (stopping) return nullptr;
    std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    return task;
  }

  Mutex mu;
  CondVar changed;
  std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;
  std::vector<std::thread> threads;
};

WorkThreads::WorkThreads(int threads) : state_(std::make_unique<State>()) {
  for (int i = 0; i < threads; ++i) {
    state_->threads.emplace_back([state = state_.get()] {
      while (const std::function<void()> task = state->Next()) task();
    });
  }
}

WorkThreads::~WorkThreads() {
  std::deque<std::function<void()>> dropped;
  {
    const MutexLock lock(state_->mu);
    state_->stopping = true;
    dropped.swap(state_->tasks);
    state_->changed.NotifyAll();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

void WorkThreads::Submit(std::function<void()> task) {
  const MutexLock lock(state_->mu);
  state_->tasks.push_back(std::move(task));
  state_->changed.NotifyAll();
}

}  // namespace wb
