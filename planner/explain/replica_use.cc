#include "planner/explain/replica_use.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_set.h"

#include "planner/explain/part_pools.h"
#include "planner/model/plan_moves.h"

namespace wb {

std::vector<ReplicaUse> UseOfReplicas(const Plan& plan) {
  std::vector<absl::flat_hash_set<WorkerIndex>> senders(plan.pools.size());
  std::vector<std::uint64_t> bytes(plan.pools.size(), 0);
  for (const PlanGroup& group : plan.groups) {
    const PartPools pools(plan, group);
    ForEachPart(plan, group, [&](const SlicePart& part) {
      if (part.relayed) return;
      const std::uint32_t p = pools.PoolOf(part);
      if (plan.pools[p].local) return;
      bytes[p] += part.bytes();
      senders[p].insert(part.src);
    });
  }
  std::map<std::size_t, ReplicaUse> uses;
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    if (bytes[p] == 0) continue;
    const std::size_t holders = plan.pools[p].members.size();
    const auto [use, fresh] =
        uses.try_emplace(holders, ReplicaUse{holders, 0, senders[p].size(), 0});
    use->second.least_senders = std::min(use->second.least_senders, senders[p].size());
    use->second.bytes += bytes[p];
    use->second.mean_senders +=  // divided below
        static_cast<double>(bytes[p]) * static_cast<double>(senders[p].size());
  }
  std::vector<ReplicaUse> rows;
  for (auto& [holders, use] : uses) {
    use.mean_senders /= static_cast<double>(use.bytes);
    rows.push_back(use);
  }
  return rows;
}

}  // namespace wb
