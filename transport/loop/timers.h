#pragma once

#include <chrono>
#include <functional>

#include "planner/base/strong_id.h"

namespace wb {

using TimerId = StrongId<struct TimerTag>;

/// The time, and what shall be done when it has come: all that a state machine knows of its loop.
/// EventLoop implements it for processes, ManualTimers (tests/support) for tests that need no real
/// time. Loop-confined: tasks run on the thread that calls At, never from within At or Cancel.
class Timers {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void()>;

  virtual ~Timers() = default;
  virtual Clock::time_point Now() const = 0;
  /// Runs `task` once at `when`; soon, when that has passed already.
  virtual TimerId At(Clock::time_point when, Task task) = 0;
  /// `task` will not run. No effect when it has run, or for an id that At never gave.
  virtual void Cancel(TimerId timer) = 0;
};

}  // namespace wb
