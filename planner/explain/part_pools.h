#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"

#include "planner/model/plan.h"
#include "planner/model/plan_moves.h"

namespace wb {

/// Which pool the parts come from that go to one group of a plan. Both outlive this.
class PartPools {
 public:
  PartPools(const Plan& plan, const PlanGroup& group) : plan_(plan) {
    for (const PlanReceiver& receiver : group.receivers) {
      demands_[receiver.worker] = &plan.demands[receiver.demand];
    }
  }

  /// Index into Plan::pools.
  std::uint32_t PoolOf(const SlicePart& part) const {
    const Demand& demand = *demands_.at(part.dst);
    return demand.pools[static_cast<std::size_t>(part.slice - plan_.slices.data()) - demand.begin];
  }

 private:
  const Plan& plan_;
  absl::flat_hash_map<WorkerIndex, const Demand*> demands_;
};

}  // namespace wb
