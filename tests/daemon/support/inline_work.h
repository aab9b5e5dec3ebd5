#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "daemon/leader/background.h"

namespace wb::test {

/// Works of a leader, done where they are submitted: at once, or while `hold` is set when a test
/// says so.
class InlineWork final : public Background {
 public:
  bool hold = false;

  void Submit(Task work) override {
    if (hold) {
      held_.push_back(std::move(work));
    } else {
      work();
    }
  }
  void Report(Task task) override { task(); }
  std::size_t held() const { return held_.size(); }
  /// Does the first that is held.
  void DoOne() {
    const Task work = std::move(held_.at(0));
    held_.pop_front();
    work();
  }

 private:
  std::deque<Task> held_;
};

}  // namespace wb::test
