#pragma once

#include <utility>

#include "daemon/leader/background.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/work_threads.h"

namespace wb {

/// The leader's Background: two threads, so that the parts of one job do not wait for another's
/// plan. What is still to be done when it is destroyed is dropped. Thread-safe.
class LeaderWork final : public Background {
 public:
  /// `loop` is the leader's, and outlives this.
  explicit LeaderWork(EventLoop& loop) : loop_(loop) {}
  void Submit(Task work) override { threads_.Submit(std::move(work)); }
  void Report(Task task) override { loop_.Post(std::move(task)); }

 private:
  EventLoop& loop_;
  WorkThreads threads_{2};
};

}  // namespace wb
