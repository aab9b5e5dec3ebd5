#pragma once

#include <functional>

namespace wb {

/// Where the leader has done what takes too long for its loop: solving plans, making their parts.
/// Outlives what is submitted. Thread-safe.
class Background {
 public:
  using Task = std::function<void()>;

  virtual ~Background() = default;
  /// Runs `work` off the leader's loop, in no order with others.
  virtual void Submit(Task work) = 0;
  /// From a work: runs `task` on the leader's loop, after all that it reported before.
  virtual void Report(Task task) = 0;
};

}  // namespace wb
