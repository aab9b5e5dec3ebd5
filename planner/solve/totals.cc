#include "planner/solve/totals.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

#include "planner/model/plan_moves.h"

namespace wb {

void FillTotals(const PoolRows& rows, Plan& plan) {
  plan.bytes = 0;
  plan.intra_node_bytes = 0;
  plan.max_egress_bytes = 0;
  plan.max_ingress_bytes = 0;
  absl::flat_hash_map<WorkerIndex, std::uint64_t> egress;
  for (PlanGroup& group : plan.groups) {
    group.bytes = 0;
    bool relayed = false;
    for (const Quota& quota : group.quotas) {
      group.bytes += quota.bytes;
      if (quota.relay.has_value()) {
        relayed = true;
        continue;
      }
      if (plan.pools[quota.pool].local) {
        plan.intra_node_bytes += quota.bytes;
        continue;
      }
      std::uint64_t& sent = egress[quota.src];
      sent += quota.bytes;
      plan.max_egress_bytes = std::max(plan.max_egress_bytes, sent);
    }
    for (const PlanReceiver& receiver : group.receivers) {
      plan.max_ingress_bytes = std::max(plan.max_ingress_bytes, rows.nic_bytes(receiver.demand));
    }
    plan.bytes += group.bytes;
    if (!relayed) continue;
    ForEachPart(plan, group, [&](const SlicePart& part) {
      if (!part.relayed) return;
      std::uint64_t& sent = egress[part.src];
      sent += part.bytes();
      plan.max_egress_bytes = std::max(plan.max_egress_bytes, sent);
    });
  }
}

}  // namespace wb
