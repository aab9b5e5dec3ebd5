#include "planner/solve/node_sharing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/solve/crossings.h"

namespace wb {
namespace {

// A receiver of a node by what counts here.
using Mate = std::pair<std::uint32_t, std::uint32_t>;  // (turn, demand)

// Used once by ShareWithinNodes.
class Sharing {
 public:
  explicit Sharing(Plan& plan) : plan_(plan) {}

  void Share(std::vector<PlanReceiver*> receivers) {
    std::sort(receivers.begin(), receivers.end(),
              [](const PlanReceiver* a, const PlanReceiver* b) { return a->turn < b->turn; });
    std::vector<Mate> mates;
    mates.reserve(receivers.size());
    for (const PlanReceiver* receiver : receivers) {
      mates.emplace_back(receiver->turn, receiver->demand);
    }
    const auto [known, fresh] = known_.try_emplace(mates);
    if (fresh) known->second = DemandsOf(mates);
    for (std::size_t i = 0; i < receivers.size(); ++i) receivers[i]->demand = known->second[i];
  }

 private:
  std::vector<std::uint32_t> DemandsOf(const std::vector<Mate>& mates) {
    std::vector<Demand> demands;
    demands.reserve(mates.size());
    std::vector<std::uint32_t> numbers;
    numbers.reserve(mates.size());
    for (const auto& [turn, demand] : mates) {
      demands.push_back(plan_.demands[demand]);
      numbers.push_back(demand);
    }
    const std::vector<Crossing> crossings = CrossingsOf(plan_, numbers);
    const std::vector<std::span<const Crossing>> boxes = ByBox(plan_, crossings);
    std::vector<std::uint64_t> fetched(mates.size(), 0);
    // What one alone wants comes first: there is no choice.
    for (const std::span<const Crossing> alike : boxes) {
      if (alike.size() == 1) fetched[alike.front().wanted_by] += BytesOf(alike.front());
    }
    for (const std::span<const Crossing> alike : boxes) {
      if (alike.size() == 1) continue;
      const std::uint32_t fetcher = LeastFetched(alike, fetched);
      fetched[fetcher] += BytesOf(alike.front());
      for (const Crossing& crossing : alike) {
        Demand& demand = demands[crossing.wanted_by];
        if (crossing.wanted_by == fetcher) continue;
        demand.pools[crossing.slice - demand.begin] = PoolOf(mates[fetcher].first);
      }
    }
    for (std::size_t m = 0; m < demands.size(); ++m) {
      numbers[m] = static_cast<std::uint32_t>(plan_.demands.size());
      plan_.demands.push_back(std::move(demands[m]));
    }
    return numbers;
  }

  static std::uint32_t LeastFetched(std::span<const Crossing> alike,
                                    const std::vector<std::uint64_t>& fetched) {
    std::uint32_t least = alike.front().wanted_by;
    for (const Crossing& crossing : alike) {
      if (fetched[crossing.wanted_by] < fetched[least]) least = crossing.wanted_by;
    }
    return least;
  }

  std::uint64_t BytesOf(const Crossing& crossing) const {
    return plan_.slices[crossing.slice].bytes;
  }

  std::uint32_t PoolOf(std::uint32_t turn) {
    const auto [known, fresh] = pools_.try_emplace(turn);
    if (fresh) {
      known->second = static_cast<std::uint32_t>(plan_.pools.size());
      plan_.pools.push_back({{}, true, turn});
    }
    return known->second;
  }

  Plan& plan_;
  std::map<std::vector<Mate>, std::vector<std::uint32_t>> known_;  // -> demands
  std::map<std::uint32_t, std::uint32_t> pools_;                   // turn -> its pool
};

}  // namespace

void ShareWithinNodes(const Job& job, Plan& plan) {
  Sharing sharing(plan);
  for (PlanGroup& group : plan.groups) {
    std::map<std::string_view, std::vector<PlanReceiver*>> by_node;
    for (PlanReceiver& receiver : group.receivers) {
      by_node[job.layout(receiver.worker).node].push_back(&receiver);
    }
    for (auto& [node, receivers] : by_node) {
      if (receivers.size() > 1) sharing.Share(std::move(receivers));
    }
  }
}

}  // namespace wb
