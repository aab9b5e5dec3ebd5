#include "planner/solve/crossings.h"

#include <algorithm>

namespace wb {
namespace {

template <typename Same>
std::vector<std::span<const Crossing>> Runs(std::span<const Crossing> crossings, Same same) {
  std::vector<std::span<const Crossing>> runs;
  while (!crossings.empty()) {
    std::size_t count = 1;
    while (count < crossings.size() && same(crossings.front(), crossings[count])) ++count;
    runs.push_back(crossings.first(count));
    crossings = crossings.subspan(count);
  }
  return runs;
}

}  // namespace

std::vector<Crossing> CrossingsOf(const Plan& plan, std::span<const std::uint32_t> demands) {
  std::vector<Crossing> crossings;
  for (std::uint32_t d = 0; d < demands.size(); ++d) {
    const Demand& demand = plan.demands[demands[d]];
    for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
      const std::uint32_t pool = demand.pools[i - demand.begin];
      if (!plan.pools[pool].local) crossings.push_back({i, pool, d});
    }
  }
  std::sort(crossings.begin(), crossings.end(), [&](const Crossing& a, const Crossing& b) {
    const Slice& left = plan.slices[a.slice];
    const Slice& right = plan.slices[b.slice];
    if (left.source != right.source) return left.source < right.source;
    if (left.box != right.box) return left.box < right.box;
    return a.wanted_by < b.wanted_by;
  });
  return crossings;
}

std::vector<std::span<const Crossing>> BySource(const Plan& plan,
                                                std::span<const Crossing> crossings) {
  return Runs(crossings, [&](const Crossing& a, const Crossing& b) {
    return plan.slices[a.slice].source == plan.slices[b.slice].source;
  });
}

std::vector<std::span<const Crossing>> ByBox(const Plan& plan,
                                             std::span<const Crossing> crossings) {
  return Runs(crossings, [&](const Crossing& a, const Crossing& b) {
    const Slice& left = plan.slices[a.slice];
    const Slice& right = plan.slices[b.slice];
    return left.source == right.source && left.box == right.box;
  });
}

}  // namespace wb
