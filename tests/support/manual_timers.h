#pragma once

#include <map>
#include <utility>

#include "transport/loop/timers.h"

namespace wb::test {

/// A clock that stands still until the test moves it; timers run inside Advance, in the order of
/// their times, then of their making.
class ManualTimers final : public Timers {
 public:
  Clock::time_point Now() const override { return now_; }
  TimerId At(Clock::time_point when, Task task) override;
  void Cancel(TimerId timer) override;

  /// Moves the time on, stopping at each timer on the way. Advance(0) runs what is due now.
  void Advance(Clock::duration by);
  /// Timers that have neither run nor been cancelled.
  std::size_t pending() const { return timers_.size(); }

 private:
  Clock::time_point now_{std::chrono::hours(1)};
  std::uint64_t next_ = 1;
  std::map<std::pair<Clock::time_point, TimerId>, Task> timers_;
};

}  // namespace wb::test
