#include "planner/base/mutex.h"

#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace wb {
namespace {

using Clock = std::chrono::steady_clock;

struct Counter {
  Mutex mu;
  CondVar changed;
  int value ABSL_GUARDED_BY(mu) = 0;
};

TEST_CASE("Mutex lets one thread at a time in", "[base]") {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < 1000; ++i) {
        const MutexLock lock(counter.mu);
        ++counter.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(counter.mu);
  CHECK(counter.value == 4000);
}

TEST_CASE("CondVar wakes who waits", "[base]") {
  Counter counter;
  std::thread setter([&counter] {
    const MutexLock lock(counter.mu);
    counter.value = 1;
    counter.changed.NotifyAll();
  });
  {
    const MutexLock lock(counter.mu);
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(30);
    while (counter.value == 0 && counter.changed.WaitUntil(counter.mu, deadline)) {
    }
    CHECK(counter.value == 1);
  }
  setter.join();
}

TEST_CASE("CondVar returns at its deadline, with the mutex held", "[base]") {
  Counter counter;
  {
    const MutexLock lock(counter.mu);
    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(5);
    while (counter.changed.WaitUntil(counter.mu, deadline)) {
    }
    CHECK(Clock::now() >= deadline);
    ++counter.value;
  }
  const MutexLock lock(counter.mu);
  CHECK(counter.value == 1);
}

}  // namespace
}  // namespace wb
