#include "planner/solve/fan_out_bound.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "planner/solve/bound.h"
#include "planner/solve/cut.h"

namespace wb {
namespace {

// A slice that crosses between nodes, and its pool.
struct Crossing {
  const Slice* slice = nullptr;
  std::uint32_t pool = 0;
};

bool Before(const Crossing& a, const Crossing& b) {
  return a.slice->source != b.slice->source ? a.slice->source < b.slice->source
                                            : a.slice->box < b.slice->box;
}

// Of each source box, the distinct boxes that some destination wants from afar; ordered.
std::vector<Crossing> Crossings(const Plan& plan) {
  std::vector<Crossing> crossings;
  for (const Demand& demand : plan.demands) {
    for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
      const std::uint32_t pool = demand.pools[i - demand.begin];
      if (!plan.pools[pool].local) crossings.push_back({&plan.slices[i], pool});
    }
  }
  std::sort(crossings.begin(), crossings.end(), Before);
  crossings.erase(std::unique(crossings.begin(), crossings.end(),
                              [](const Crossing& a, const Crossing& b) {
                                return !Before(a, b) && !Before(b, a);
                              }),
                  crossings.end());
  return crossings;
}

// Bytes of the union of one source's boxes; of the largest, where counting them takes too long.
std::uint64_t UnionBytes(std::span<const Crossing> crossings) {
  const Slice& first = *crossings.front().slice;
  if (crossings.size() == 1) return first.bytes;
  std::vector<Box> boxes;
  std::uint64_t largest = 0;
  for (const Crossing& crossing : crossings) {
    boxes.push_back(crossing.slice->box);
    largest = std::max(largest, crossing.slice->bytes);
  }
  const std::optional<std::vector<Atom>> atoms = CutIntoAtoms(boxes, UsualWork(boxes.size()));
  if (!atoms.has_value()) return largest;
  std::uint64_t elements = 0;
  for (const Atom& atom : *atoms) elements += static_cast<std::uint64_t>(atom.box.elements());
  return elements * (first.bytes / static_cast<std::uint64_t>(first.box.elements()));
}

// What leaves each pool at least once.
std::uint64_t LeastEgress(const Plan& plan, std::size_t trainers) {
  std::vector<std::uint64_t> bytes(plan.pools.size(), 0);
  const std::vector<Crossing> crossings = Crossings(plan);
  for (std::size_t begin = 0; begin < crossings.size();) {
    std::size_t end = begin + 1;
    while (end < crossings.size() &&
           crossings[end].slice->source == crossings[begin].slice->source) {
      ++end;
    }
    bytes[crossings[begin].pool] += UnionBytes(std::span(crossings).subspan(begin, end - begin));
    begin = end;
  }
  absl::flat_hash_map<WorkerIndex, std::uint32_t> numbers;
  std::vector<EgressClass> classes;
  for (std::size_t pool = 0; pool < plan.pools.size(); ++pool) {
    if (bytes[pool] == 0) continue;
    EgressClass& added = classes.emplace_back();
    added.bytes = bytes[pool];
    for (const WorkerIndex member : plan.pools[pool].members) {
      added.holders.push_back(
          numbers.try_emplace(member, static_cast<std::uint32_t>(numbers.size())).first->second);
    }
  }
  return MinimizeEgress(classes, trainers).max_bytes;
}

}  // namespace

std::uint64_t FanOutBound(const Plan& plan, const PoolRows& rows, std::size_t trainers) {
  std::uint64_t most = 0;
  std::uint64_t total = 0;
  std::size_t nics = trainers;
  for (const PlanGroup& group : plan.groups) {
    for (const PlanReceiver& receiver : group.receivers) {
      most = std::max(most, rows.nic_bytes(receiver.demand));
      total += rows.nic_bytes(receiver.demand);
      ++nics;
    }
  }
  const std::uint64_t shared = total / nics + (total % nics == 0 ? 0 : 1);
  return std::max({most, LeastEgress(plan, trainers), shared});
}

}  // namespace wb
