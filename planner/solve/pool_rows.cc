#include "planner/solve/pool_rows.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "planner/model/plan_moves.h"

namespace wb {

PoolRows::PoolRows(const Plan& plan) : plan_(plan), rows_(plan.pools.size()) {
  for (const Demand& demand : plan.demands) demands_.push_back(Sort(plan, demand));
  std::vector<std::uint64_t> bytes(plan.pools.size(), 0);
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    by_turn_.emplace_back();
    for (const PlanReceiver* receiver : ByTurn(plan.groups[g])) {
      by_turn_.back().push_back(receiver->demand);
    }
    AddRows(g, bytes);
  }
}

PoolRows::ByPool PoolRows::Sort(const Plan& plan, const Demand& demand) {
  const auto pool = [&](std::uint32_t slice) { return demand.pools[slice - demand.begin]; };
  ByPool sorted;
  sorted.slices.resize(demand.end - demand.begin);
  std::iota(sorted.slices.begin(), sorted.slices.end(), demand.begin);
  std::stable_sort(sorted.slices.begin(), sorted.slices.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return pool(a) < pool(b); });
  for (std::uint32_t i = 0; i < sorted.slices.size(); ++i) {
    const std::uint32_t slice = sorted.slices[i];
    if (sorted.entries.empty() || sorted.entries.back().pool != pool(slice)) {
      sorted.entries.push_back({pool(slice), i, 0});
    }
    sorted.entries.back().bytes += plan.slices[slice].bytes;
  }
  for (const Entry& entry : sorted.entries) {
    if (!plan.pools[entry.pool].local) sorted.nic_bytes += entry.bytes;
  }
  return sorted;
}

// `bytes` is all 0, before and after.
void PoolRows::AddRows(std::uint32_t group, std::vector<std::uint64_t>& bytes) {
  std::vector<std::uint32_t> pools;
  for (const std::uint32_t demand : by_turn_[group]) {
    for (const Entry& entry : demands_[demand].entries) {
      if (bytes[entry.pool] == 0) pools.push_back(entry.pool);
      bytes[entry.pool] += entry.bytes;
    }
  }
  for (const std::uint32_t pool : pools) {
    rows_[pool].push_back({group, bytes[pool]});
    bytes[pool] = 0;
  }
}

void PoolRows::AddBytesOf(std::uint32_t group, std::span<std::uint64_t> bytes) const {
  for (const std::uint32_t demand : by_turn_[group]) {
    for (const Entry& entry : demands_[demand].entries) {
      if (!plan_.pools[entry.pool].mate.has_value()) bytes[entry.pool] += entry.bytes;
    }
  }
}

void PoolRows::ForEachSlice(std::uint32_t pool,
                            std::uint32_t group,
                            absl::FunctionRef<void(const Slice&)> visit) const {
  for (const std::uint32_t number : by_turn_[group]) {
    const ByPool& demand = demands_[number];
    const auto entry =
        std::lower_bound(demand.entries.begin(), demand.entries.end(), pool,
                         [](const Entry& e, std::uint32_t key) { return e.pool < key; });
    if (entry == demand.entries.end() || entry->pool != pool) continue;
    const std::size_t end =
        entry + 1 == demand.entries.end() ? demand.slices.size() : (entry + 1)->begin;
    for (std::size_t i = entry->begin; i < end; ++i) visit(plan_.slices[demand.slices[i]]);
  }
}

}  // namespace wb
