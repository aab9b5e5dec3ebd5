#include "planner/solve/plan_bounds.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "absl/container/flat_hash_map.h"

#include "planner/solve/bound.h"
#include "planner/solve/cut.h"

namespace wb {
namespace {

using Bytes = std::vector<std::uint64_t>;

// A slice that comes from afar, its pool, and who wants it: a number of the caller's.
struct Crossing {
  const Slice* slice = nullptr;
  std::uint64_t box_hash = 0;
  std::uint32_t pool = 0;
  std::uint32_t wanted_by = 0;
};

std::uint64_t HashOf(const Box& box) {
  std::uint64_t hash = 0;
  for (const Index* index : {&box.lo(), &box.hi()}) {
    hash = XXH3_64bits_withSeed(index->data(), index->size() * sizeof(std::int64_t), hash);
  }
  return hash;
}

bool SameBox(const Crossing& a, const Crossing& b) {
  return a.slice->source == b.slice->source && a.box_hash == b.box_hash &&
         a.slice->box == b.slice->box;
}

// Boxes in any order will do, the same always: hashes are faster to compare.
bool Before(const Crossing& a, const Crossing& b) {
  if (a.slice->source != b.slice->source) return a.slice->source < b.slice->source;
  if (a.box_hash != b.box_hash) return a.box_hash < b.box_hash;
  if (a.slice->box != b.slice->box) return a.slice->box < b.slice->box;
  return a.wanted_by < b.wanted_by;
}

std::uint64_t ElementBytes(const Slice& slice) {
  return slice.bytes / static_cast<std::uint64_t>(slice.box.elements());
}

// Elements of one source that the same ones want.
struct Wants {
  std::vector<std::uint32_t> by;  // ascending
  std::uint64_t bytes = 0;
};

void Unite(const std::vector<std::uint32_t>& more, std::vector<std::uint32_t>& by) {
  by.insert(by.end(), more.begin(), more.end());
  std::sort(by.begin(), by.end());
  by.erase(std::unique(by.begin(), by.end()), by.end());
}

// Of crossings of one source, who wants each box.
std::vector<Wants> WantsOfBoxes(std::span<const Crossing> crossings) {
  std::vector<Wants> wants;
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    if (i == 0 || !SameBox(crossings[i - 1], crossings[i])) {
      wants.push_back({{}, crossings[i].slice->bytes});
    }
    std::vector<std::uint32_t>& by = wants.back().by;
    if (by.empty() || by.back() != crossings[i].wanted_by) by.push_back(crossings[i].wanted_by);
  }
  return wants;
}

// Of crossings of one source, who wants each element: of the largest box alone, where to cut them
// takes too long.
std::vector<Wants> WantsOf(std::span<const Crossing> crossings) {
  std::vector<Wants> of_boxes = WantsOfBoxes(crossings);
  if (of_boxes.size() == 1) return of_boxes;
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    if (i == 0 || !SameBox(crossings[i - 1], crossings[i])) {
      boxes.push_back(crossings[i].slice->box);
    }
  }
  const std::optional<std::vector<Atom>> atoms = CutIntoAtoms(boxes, UsualWork(boxes.size()));
  std::vector<Wants> wants;
  if (!atoms.has_value()) {
    Wants& largest = wants.emplace_back();
    for (const Wants& of_box : of_boxes) {
      Unite(of_box.by, largest.by);
      largest.bytes = std::max(largest.bytes, of_box.bytes);
    }
    return wants;
  }
  for (const Atom& atom : *atoms) {
    Wants& of_atom = wants.emplace_back();
    for (const std::uint32_t box : atom.holders) Unite(of_boxes[box].by, of_atom.by);
    of_atom.bytes =
        static_cast<std::uint64_t>(atom.box.elements()) * ElementBytes(*crossings.front().slice);
  }
  return wants;
}

// Visits the crossings source by source: (pool, wants).
template <typename Visit>
void ForEachSource(std::vector<Crossing> crossings, Visit visit) {
  std::sort(crossings.begin(), crossings.end(), Before);
  for (std::size_t begin = 0; begin < crossings.size();) {
    std::size_t end = begin + 1;
    while (end < crossings.size() &&
           crossings[end].slice->source == crossings[begin].slice->source) {
      ++end;
    }
    visit(crossings[begin].pool, WantsOf(std::span(crossings).subspan(begin, end - begin)));
    begin = end;
  }
}

void AddCrossings(const Plan& plan,
                  std::uint32_t demand_number,
                  std::uint32_t wanted_by,
                  std::vector<Crossing>& crossings) {
  const Demand& demand = plan.demands[demand_number];
  for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
    const std::uint32_t pool = demand.pools[i - demand.begin];
    if (plan.pools[pool].local) continue;
    crossings.push_back({&plan.slices[i], HashOf(plan.slices[i].box), pool, wanted_by});
  }
}

// The least maximum over trainers, if of each pool `bytes` leave.
std::uint64_t LeastEgress(const Plan& plan, const Bytes& bytes, std::size_t trainers) {
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

// Of each pool, what leaves it if each element leaves once.
Bytes OnceFromPools(const Plan& plan) {
  Bytes bytes(plan.pools.size(), 0);
  std::vector<Crossing> crossings;
  for (std::uint32_t d = 0; d < plan.demands.size(); ++d) AddCrossings(plan, d, 0, crossings);
  ForEachSource(std::move(crossings), [&](std::uint32_t pool, const std::vector<Wants>& wants) {
    for (const Wants& want : wants) bytes[pool] += want.bytes;
  });
  return bytes;
}

// What must come into a node.
struct NodeNeeds {
  std::uint64_t nic_bytes = 0;  // into the most loaded NIC, at least
  std::uint64_t bytes = 0;      // once each
  Bytes from_pools;             // `bytes` by pool
};

NodeNeeds NeedsOf(const Plan& plan, std::span<const std::uint32_t> demands) {
  NodeNeeds needs{0, 0, Bytes(plan.pools.size(), 0)};
  std::vector<Crossing> crossings;
  for (std::uint32_t i = 0; i < demands.size(); ++i) AddCrossings(plan, demands[i], i, crossings);
  std::map<std::vector<std::uint32_t>, std::uint64_t> by_wanters;
  ForEachSource(std::move(crossings), [&](std::uint32_t pool, const std::vector<Wants>& wants) {
    for (const Wants& want : wants) {
      by_wanters[want.by] += want.bytes;
      needs.from_pools[pool] += want.bytes;
      needs.bytes += want.bytes;
    }
  });
  std::vector<EgressClass> classes;
  classes.reserve(by_wanters.size());
  for (const auto& [by, bytes] : by_wanters) classes.push_back({by, bytes});
  needs.nic_bytes = MinimizeEgress(classes, demands.size()).max_bytes;
  return needs;
}

// Lists of the demands that the rollouts of a node have, and on how many nodes.
std::map<std::vector<std::uint32_t>, std::uint64_t> NodesAlike(const Job& job, const Plan& plan) {
  std::map<std::string_view, std::vector<std::uint32_t>> by_node;
  for (const PlanGroup& group : plan.groups) {
    for (const PlanReceiver& receiver : group.receivers) {
      by_node[job.layout(receiver.worker).node].push_back(receiver.demand);
    }
  }
  std::map<std::vector<std::uint32_t>, std::uint64_t> alike;
  for (auto& [node, demands] : by_node) {
    std::sort(demands.begin(), demands.end());
    ++alike[std::move(demands)];
  }
  return alike;
}

// What enters and leaves NICs if each worker gets all that it wants from afar for itself.
struct Apart {
  std::uint64_t nic_bytes = 0;  // into the most loaded NIC
  std::uint64_t bytes = 0;      // into all
  std::size_t rollouts = 0;
  Bytes from_pools;
};

Apart EachForItself(const Plan& plan) {
  std::vector<std::uint64_t> receivers(plan.demands.size(), 0);
  Apart apart{0, 0, 0, Bytes(plan.pools.size(), 0)};
  for (const PlanGroup& group : plan.groups) {
    for (const PlanReceiver& receiver : group.receivers) ++receivers[receiver.demand];
    apart.rollouts += group.receivers.size();
  }
  for (std::uint32_t d = 0; d < plan.demands.size(); ++d) {
    const Demand& demand = plan.demands[d];
    std::uint64_t into_nic = 0;
    for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
      const std::uint32_t pool = demand.pools[i - demand.begin];
      if (plan.pools[pool].local) continue;
      into_nic += plan.slices[i].bytes;
      apart.from_pools[pool] += plan.slices[i].bytes * receivers[d];
    }
    apart.bytes += into_nic * receivers[d];
    if (receivers[d] > 0) apart.nic_bytes = std::max(apart.nic_bytes, into_nic);
  }
  return apart;
}

std::uint64_t DivideUp(std::uint64_t bytes, std::uint64_t by) {
  return by == 0 ? 0 : bytes / by + (bytes % by == 0 ? 0 : 1);
}

}  // namespace

void FillBounds(const Job& job, std::size_t trainers, Plan& plan) {
  const Apart apart = EachForItself(plan);
  const std::size_t nics = trainers + apart.rollouts;
  const std::uint64_t once = LeastEgress(plan, OnceFromPools(plan), trainers);
  plan.bounds.direct = std::max(apart.nic_bytes, LeastEgress(plan, apart.from_pools, trainers));
  plan.bounds.fan_out = std::max({apart.nic_bytes, once, DivideUp(apart.bytes, nics)});

  NodeNeeds all{0, 0, Bytes(plan.pools.size(), 0)};
  for (const auto& [demands, nodes] : NodesAlike(job, plan)) {
    const NodeNeeds needs = NeedsOf(plan, demands);
    all.nic_bytes = std::max(all.nic_bytes, needs.nic_bytes);
    all.bytes += needs.bytes * nodes;
    for (std::size_t p = 0; p < needs.from_pools.size(); ++p) {
      all.from_pools[p] += needs.from_pools[p] * nodes;
    }
  }
  plan.bounds.node_sharing =
      plan.fan_out ? std::max({all.nic_bytes, once, DivideUp(all.bytes, nics)})
                   : std::max(all.nic_bytes, LeastEgress(plan, all.from_pools, trainers));
}

}  // namespace wb
