#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "transport/loop/timers.h"

namespace wb {

/// Lets a state machine take one step at a time: a task given while another runs waits until that
/// one is done, so that whoever is called from inside a step may call back. Timers run as turns
/// too, and none runs after the Turns are gone. Loop-confined.
class Turns {
 public:
  using Task = Timers::Task;
  using Clock = Timers::Clock;

  explicit Turns(Timers& timers) : timers_(timers) {}

  /// Runs `task` now, or right after the turn in progress.
  void Run(Task task);
  TimerId At(Clock::time_point when, Task task);
  TimerId After(Clock::duration wait, Task task) { return At(Now() + wait, std::move(task)); }
  void Cancel(TimerId timer) { timers_.Cancel(timer); }
  Clock::time_point Now() const { return timers_.Now(); }
  /// `task` as something that may be called at any time from the loop: it runs as a turn, and not
  /// at all once the Turns are gone.
  Task Guard(Task task);
  /// As Guard, for tasks that are not known yet; the callee, not the call, may be made, copied and
  /// destroyed on any thread.
  std::function<void(Task)> FromOutside();

 private:
  Timers& timers_;
  std::deque<Task> waiting_;
  bool running_ = false;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace wb
