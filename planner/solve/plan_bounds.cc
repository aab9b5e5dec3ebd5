#include "planner/solve/plan_bounds.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "planner/base/divide_up.h"
#include "planner/solve/bound.h"
#include "planner/solve/crossings.h"
#include "planner/solve/cut.h"

namespace wb {
namespace {

using Bytes = std::vector<std::uint64_t>;

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

// Of crossings of one source, who wants each element: of the largest box alone, where to cut them
// takes too long.
std::vector<Wants> WantsOf(const Plan& plan, std::span<const Crossing> crossings) {
  const std::vector<std::span<const Crossing>> alike = ByBox(plan, crossings);
  std::vector<Wants> of_boxes;
  for (const std::span<const Crossing> box : alike) {
    Wants& wants = of_boxes.emplace_back(Wants{{}, plan.slices[box.front().slice].bytes});
    for (const Crossing& crossing : box) {
      const bool known = !wants.by.empty() && wants.by.back() == crossing.wanted_by;
      if (!known) wants.by.push_back(crossing.wanted_by);
    }
  }
  if (of_boxes.size() == 1) return of_boxes;
  std::vector<Box> boxes;
  boxes.reserve(alike.size());
  for (const std::span<const Crossing> box : alike) {
    boxes.push_back(plan.slices[box.front().slice].box);
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
  const std::uint64_t element_bytes = plan.slices[crossings.front().slice].element_bytes();
  for (const Atom& atom : *atoms) {
    Wants& of_atom = wants.emplace_back();
    for (const std::uint32_t box : atom.holders) Unite(of_boxes[box].by, of_atom.by);
    of_atom.bytes = static_cast<std::uint64_t>(atom.box.elements()) * element_bytes;
  }
  return wants;
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
  std::vector<std::uint32_t> demands(plan.demands.size());
  std::iota(demands.begin(), demands.end(), 0U);
  const std::vector<Crossing> crossings = CrossingsOf(plan, demands);
  for (const std::span<const Crossing> source : BySource(plan, crossings)) {
    for (const Wants& want : WantsOf(plan, source)) bytes[source.front().pool] += want.bytes;
  }
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
  std::map<std::vector<std::uint32_t>, std::uint64_t> by_wanters;
  const std::vector<Crossing> crossings = CrossingsOf(plan, demands);
  for (const std::span<const Crossing> source : BySource(plan, crossings)) {
    for (const Wants& want : WantsOf(plan, source)) {
      by_wanters[want.by] += want.bytes;
      needs.from_pools[source.front().pool] += want.bytes;
      needs.bytes += want.bytes;
    }
  }
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

}  // namespace

void FillBounds(const Job& job, std::size_t trainers, Plan& plan) {
  const Apart apart = EachForItself(plan);
  const std::uint64_t nics = std::max<std::uint64_t>(trainers + apart.rollouts, 1);
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
