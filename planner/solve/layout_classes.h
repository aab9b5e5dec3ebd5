#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/model/layout.h"

namespace wb {

/// Workers of one role whose pieces are equal, storage included: the ranks of engines that are
/// alike, data parallel ranks. What holds for the pieces of one holds for all, so each class is
/// planned once, for its first worker. Immutable.
class LayoutClasses {
 public:
  explicit LayoutClasses(const Job& job);

  /// The first worker of the class of `worker`.
  WorkerIndex first(WorkerIndex worker) const { return first_[worker.value()]; }
  bool is_first(WorkerIndex worker) const { return first(worker) == worker; }
  /// All workers of the class of `worker`, ascending.
  std::span<const WorkerIndex> members(WorkerIndex worker) const {
    return members_[first(worker).value()];
  }

 private:
  std::vector<WorkerIndex> first_;                 // per worker
  std::vector<std::vector<WorkerIndex>> members_;  // per worker; empty unless it is the first
};

}  // namespace wb
