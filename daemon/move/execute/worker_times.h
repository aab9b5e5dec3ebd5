#pragma once

#include <chrono>

#include "daemon/move/move_times.h"
#include "transport/loop/timers.h"

namespace wb {

/// The time in which at least one of several things went on. Loop-confined.
class BusyTime {
 public:
  using TimePoint = Timers::Clock::time_point;

  void Begin(TimePoint now) {
    if (active_++ == 0) since_ = now;
  }
  /// Of one that has begun.
  void End(TimePoint now) {
    if (--active_ == 0) total_ += now - since_;
  }
  double seconds() const { return std::chrono::duration<double>(total_).count(); }

 private:
  int active_ = 0;
  TimePoint since_;
  Timers::Clock::duration total_{};
};

/// The phases of one worker's chunks in an attempt.
struct WorkerTimes {
  BusyTime pack;
  BusyTime wire;
  BusyTime scatter;
  BusyTime copy;

  MoveTimes Get() const {
    return {pack.seconds(), wire.seconds(), scatter.seconds(), copy.seconds()};
  }
};

}  // namespace wb
