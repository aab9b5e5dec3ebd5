#include "transport/loop/turns.h"

#include <utility>

namespace wb {

void Turns::Run(Task task) {
  waiting_.push_back(std::move(task));
  if (running_) return;
  running_ = true;
  while (!waiting_.empty()) {
    const Task next = std::move(waiting_.front());
    waiting_.pop_front();
    next();
  }
  running_ = false;
}

TimerId Turns::At(Clock::time_point when, Task task) {
  return timers_.At(when, Guard(std::move(task)));
}

Turns::Task Turns::Guard(Task task) {
  return [turn = FromOutside(), task = std::move(task)] { turn(task); };
}

std::function<void(Turns::Task)> Turns::FromOutside() {
  return [this, alive = std::weak_ptr<const bool>(alive_)](Task task) {
    if (alive.lock() != nullptr) Run(std::move(task));
  };
}

}  // namespace wb
