#include "tests/support/manual_timers.h"

#include <algorithm>

namespace wb::test {

TimerId ManualTimers::At(Clock::time_point when, Task task) {
  const TimerId id(next_++);
  timers_.emplace(std::pair{when, id}, std::move(task));
  return id;
}

void ManualTimers::Cancel(TimerId timer) {
  const auto found = std::find_if(timers_.begin(), timers_.end(),
                                  [&](const auto& entry) { return entry.first.second == timer; });
  if (found != timers_.end()) timers_.erase(found);
}

void ManualTimers::Advance(Clock::duration by) {
  const Clock::time_point until = now_ + by;
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    now_ = std::max(now_, timers_.begin()->first.first);
    const Task task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
  now_ = until;
}

}  // namespace wb::test
