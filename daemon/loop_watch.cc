#include "daemon/loop_watch.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <pthread.h>

#include "absl/strings/str_cat.h"

#include "daemon/state/seconds.h"

namespace wb {

struct LoopWatch::Pulse {
  explicit Pulse(Loop watched) : loop(std::move(watched)) {}

  const Loop loop;
  std::atomic<Clock::time_point> last{Clock::now()};  // sign of life
  std::atomic<bool> asked{false};                     // and no answer yet

  /// Asks for a sign of life, unless the loop still owes one.
  static void Ask(const std::shared_ptr<Pulse>& pulse) {
    if (pulse->asked.exchange(true)) return;
    pulse->loop.post([pulse] {
      pulse->last.store(Clock::now());
      pulse->asked.store(false);
    });
  }
};

std::string LoopWatch::Stuck::ToString() const {
  return absl::StrCat("the ", name, " thread has not turned for ", Seconds(since));
}

LoopWatch::LoopWatch(std::vector<Loop> loops,
                     std::chrono::milliseconds limit,
                     std::function<void(const std::vector<Stuck>&)> changed)
    : limit_(limit), changed_(std::move(changed)), pulses_([&loops] {
        std::vector<std::shared_ptr<Pulse>> pulses;
        pulses.reserve(loops.size());
        for (Loop& loop : loops) pulses.push_back(std::make_shared<Pulse>(std::move(loop)));
        return pulses;
      }()) {
  thread_ = std::thread([this] { Run(); });
}

LoopWatch::~LoopWatch() {
  {
    const MutexLock lock(mu_);
    ending_ = true;
    changed_end_.NotifyAll();
  }
  thread_.join();
}

bool LoopWatch::AwaitNextLook() {
  const Clock::time_point next = Clock::now() + limit_ / 4;
  const MutexLock lock(mu_);
  while (!ending_) {
    if (!changed_end_.WaitUntil(mu_, next)) return !ending_;
  }
  return false;
}

void LoopWatch::Run() {
  ::pthread_setname_np(::pthread_self(), "wb-watch");
  std::vector<std::string> known;
  do {
    for (const auto& pulse : pulses_) Pulse::Ask(pulse);
    const std::vector<Stuck> stuck = StuckLoops();
    std::vector<std::string> names;
    names.reserve(stuck.size());
    for (const Stuck& one : stuck) names.push_back(one.name);
    if (std::exchange(known, names) != names) changed_(stuck);
  } while (AwaitNextLook());
}

std::vector<LoopWatch::Stuck> LoopWatch::StuckLoops() const {
  std::vector<Stuck> stuck;
  const Clock::time_point now = Clock::now();
  for (const auto& pulse : pulses_) {
    const Clock::duration since = now - pulse->last.load();
    if (since >= limit_ * 3 / 4) stuck.push_back({pulse->loop.name, since});
  }
  return stuck;
}

bool LoopWatch::IsStuck(const std::string& name) const {
  const std::vector<Stuck> stuck = StuckLoops();
  return std::any_of(stuck.begin(), stuck.end(),
                     [&](const Stuck& one) { return one.name == name; });
}

}  // namespace wb
