#include "planner/explain/nic_loads.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "planner/model/plan_moves.h"

namespace wb {

std::vector<std::uint32_t> NodeNumbers(const Job& job) {
  absl::flat_hash_map<absl::string_view, std::uint32_t> numbers;
  std::vector<std::uint32_t> nodes;
  nodes.reserve(job.layouts.size());
  for (const Layout& layout : job.layouts) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    nodes.push_back(numbers.try_emplace(layout.node, next).first->second);
  }
  return nodes;
}

std::vector<NicLoad> NicLoads(const Job& job, const Plan& plan) {
  const std::vector<std::uint32_t> nodes = NodeNumbers(job);
  std::vector<NicLoad> loads(job.layouts.size());
  for (const PlanGroup& group : plan.groups) {
    ForEachPart(plan, group, [&](const SlicePart& part) {
      const bool local = nodes[part.src.value()] == nodes[part.dst.value()];
      NicLoad& src = loads[part.src.value()];
      NicLoad& dst = loads[part.dst.value()];
      (local ? src.local_out : src.out) += part.bytes();
      (local ? dst.local_in : dst.in) += part.bytes();
    });
  }
  return loads;
}

}  // namespace wb
