#include "planner/explain/explanation.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace wb {
namespace {

constexpr std::size_t kBusiest = 5;

Spread SpreadOf(const Job& job, std::span<const NicLoad> loads, Role role, Direction direction) {
  Spread spread{UINT64_MAX, 0, 0};
  double count = 0;
  for (std::size_t w = 0; w < loads.size(); ++w) {
    if (job.layouts[w].role != role) continue;
    const std::uint64_t bytes = BytesOf(loads[w], direction);
    spread.min = std::min(spread.min, bytes);
    spread.max = std::max(spread.max, bytes);
    spread.mean += static_cast<double>(bytes);
    ++count;
  }
  if (count == 0) return {};
  spread.mean /= count;
  return spread;
}

std::size_t CountFull(const Plan& plan, std::span<const NicLoad> loads) {
  const std::uint64_t most = plan.max_nic_bytes();
  if (most == 0) return 0;
  return static_cast<std::size_t>(std::count_if(
      loads.begin(), loads.end(),
      [&](const NicLoad& load) { return most - std::max(load.out, load.in) <= most / 100; }));
}

BoundRatio RatioTo(const char* name, std::uint64_t bound, const Plan& plan) {
  BoundRatio ratio{name, bound, 1};
  if (bound > 0) {
    ratio.max_over_bound = static_cast<double>(plan.max_nic_bytes()) / static_cast<double>(bound);
  }
  return ratio;
}

std::vector<BoundRatio> BoundsOf(const Plan& plan) {
  std::vector<BoundRatio> bounds{RatioTo("direct", plan.bounds.direct, plan),
                                 RatioTo("fan_out", plan.bounds.fan_out, plan),
                                 RatioTo("node_sharing", plan.bounds.node_sharing, plan)};
  const std::ptrdiff_t in_force = plan.node_sharing ? 2 : plan.fan_out ? 1 : 0;
  std::rotate(bounds.begin(), bounds.begin() + in_force, bounds.begin() + in_force + 1);
  return bounds;
}

}  // namespace

Explanation Explain(const Job& job, const Plan& plan, const std::optional<Rates>& rates) {
  const std::vector<NicLoad> loads = NicLoads(job, plan);
  Explanation explanation;
  explanation.survey = SurveyMoves(job, plan);
  explanation.out = SpreadOf(job, loads, Role::kTrainer, Direction::kOut);
  explanation.in = SpreadOf(job, loads, Role::kRollout, Direction::kIn);
  explanation.full_nics = CountFull(plan, loads);
  explanation.busiest = BusiestNics(job, plan, loads, kBusiest);
  explanation.replicas = UseOfReplicas(plan);
  explanation.bounds = BoundsOf(plan);
  if (!plan.fan_out && !plan.node_sharing) explanation.binding = FindBinding(plan, loads);
  if (rates.has_value()) explanation.wire = PredictWireTime(plan, loads, *rates);
  return explanation;
}

}  // namespace wb
