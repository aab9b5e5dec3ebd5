#include "planner/solve/route.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "planner/solve/balance.h"
#include "planner/solve/bound.h"
#include "planner/solve/traffic.h"

namespace wb {
namespace {

RoutedPart Whole(const SliceIndex& index, std::uint32_t slice, WorkerIndex src) {
  const Box& box = index.slices[slice].box;
  return {slice, src, box.lo()[0], box.hi()[0]};
}

// What the trainers send before anything is routed, bytes by sender number.
struct KeptLoad {
  std::vector<std::uint64_t> nic;
  std::vector<std::uint64_t> local;
};

KeptLoad LoadOf(const Job& job, const Traffic& traffic, const KeptMoves& kept) {
  std::vector<std::uint32_t> number(job.layouts.size());  // per worker
  for (std::uint32_t s = 0; s < traffic.senders.size(); ++s) number[traffic.senders[s].value()] = s;
  KeptLoad load{std::vector<std::uint64_t>(traffic.senders.size()),
                std::vector<std::uint64_t>(traffic.senders.size())};
  for (const Move& move : kept.moves) {
    const bool local = job.layout(move.src).node == job.layout(move.dst).node;
    (local ? load.local : load.nic)[number[move.src.value()]] += move.bytes;
  }
  return load;
}

// Takes out the slices whose moves are kept.
void LeaveOut(const KeptMoves& kept, const SliceIndex& index, Traffic& traffic) {
  const auto is_kept = [&](std::uint32_t slice) {
    return kept.destinations[index.slices[slice].dst.value()];
  };
  std::erase_if(traffic.local, is_kept);
  for (TrafficClass& c : traffic.classes) {
    std::erase_if(c.slices, is_kept);
    c.bytes = 0;
    for (const std::uint32_t slice : c.slices) c.bytes += index.slices[slice].bytes;
  }
  std::erase_if(traffic.classes, [](const TrafficClass& c) { return c.slices.empty(); });
}

/// The least maximum over senders that carry `load` already.
EgressOptimum Optimum(const Traffic& traffic, const std::vector<std::uint64_t>& load) {
  std::vector<EgressClass> egress;
  egress.reserve(traffic.classes.size() + load.size());
  for (const TrafficClass& c : traffic.classes) egress.push_back({c.holders, c.bytes});
  for (std::uint32_t s = 0; s < load.size(); ++s) {
    if (load[s] > 0) egress.push_back({{s}, load[s]});
  }
  return MinimizeEgress(egress, traffic.senders.size());
}

// Spreads copies inside nodes evenly over the trainers that could make them.
void RouteLocal(const SliceIndex& index,
                const Traffic& traffic,
                const NodeMap& nodes,
                const std::vector<std::uint64_t>& kept,
                std::vector<RoutedPart>& parts) {
  // Per worker: bytes, number.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> load(traffic.senders.size());
  for (std::uint32_t s = 0; s < traffic.senders.size(); ++s) {
    load[traffic.senders[s].value()] = {kept[s], s};
  }
  for (const std::uint32_t i : traffic.local) {
    const Slice& slice = index.slices[i];
    const std::span<const WorkerIndex> near =
        nodes.HoldersNear(index.sources[slice.source].holders, slice.dst);
    const WorkerIndex src = *std::min_element(
        near.begin(), near.end(),
        [&](WorkerIndex a, WorkerIndex b) { return load[a.value()] < load[b.value()]; });
    load[src.value()].first += slice.bytes;
    parts.push_back(Whole(index, i, src));
  }
}

// `load` already counts the other classes: placed slices, or the flow's shares of those to come.
void PlaceClass(const SliceIndex& index,
                const Traffic& traffic,
                std::uint32_t number,
                std::vector<std::uint64_t>& load,
                std::vector<SentPart>& parts) {
  const TrafficClass& traffic_class = traffic.classes[number];
  using Load = std::pair<std::uint64_t, std::uint32_t>;  // bytes, sender
  std::vector<Load> heap;
  for (const std::uint32_t holder : traffic_class.holders) heap.emplace_back(load[holder], holder);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  for (const std::uint32_t i : traffic_class.slices) {
    const Slice& slice = index.slices[i];
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    auto& [bytes, sender] = heap.back();
    bytes += slice.bytes;
    load[sender] = bytes;
    parts.push_back({i, number, sender, slice.box.lo()[0], slice.box.hi()[0],
                     slice.bytes / static_cast<std::uint64_t>(slice.box.extent(0))});
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

std::vector<SentPart> PlaceClasses(const SliceIndex& index,
                                   const Traffic& traffic,
                                   const EgressOptimum& optimum,
                                   std::vector<std::uint64_t> load) {
  const auto add_shares = [&](std::size_t number, bool add) {
    const std::vector<std::uint32_t>& holders = traffic.classes[number].holders;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const std::uint64_t share = optimum.shares[number][i];
      load[holders[i]] = add ? load[holders[i]] + share : load[holders[i]] - share;
    }
  };
  for (std::size_t number = 0; number < traffic.classes.size(); ++number) {
    add_shares(number, true);
  }
  std::vector<SentPart> parts;
  for (std::uint32_t number = 0; number < traffic.classes.size(); ++number) {
    add_shares(number, false);
    PlaceClass(index, traffic, number, load, parts);
  }
  return parts;
}

}  // namespace

Routing Route(const Job& job, const SliceIndex& index, const KeptMoves& kept) {
  const NodeMap nodes(job, index.sets);
  Traffic traffic = FindTraffic(job, index, nodes);
  const KeptLoad load = LoadOf(job, traffic, kept);
  EgressOptimum optimum = Optimum(traffic, {});
  Routing routing;
  routing.bounds.direct = std::max(optimum.max_bytes, traffic.max_ingress_bytes);
  if (!kept.moves.empty()) {
    LeaveOut(kept, index, traffic);
    optimum = Optimum(traffic, load.nic);
  }
  RouteLocal(index, traffic, nodes, load.local, routing.parts);
  Balancer balancer(traffic.classes, load.nic, PlaceClasses(index, traffic, optimum, load.nic));
  for (const SentPart& part :
       std::move(balancer).Run(std::max(optimum.max_bytes, routing.bounds.direct))) {
    routing.parts.push_back({part.slice, traffic.senders[part.sender], part.lo, part.hi});
  }
  return routing;
}

}  // namespace wb
