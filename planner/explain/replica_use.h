#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/model/plan.h"

namespace wb {

/// How many of the trainers that hold the same send it: of all that `holders` trainers each hold
/// and that passes NICs. One row for each number of holders.
struct ReplicaUse {
  std::size_t holders = 0;
  std::uint64_t bytes = 0;        // sent, to all groups
  std::size_t least_senders = 0;  // of a set of holders: those that send any of it
  double mean_senders = 0;        // likewise, weighted by bytes
  friend bool operator==(const ReplicaUse&, const ReplicaUse&) = default;
};

/// Ordered by holders.
[[nodiscard]] std::vector<ReplicaUse> UseOfReplicas(const Plan& plan);

}  // namespace wb
