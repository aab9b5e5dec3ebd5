#include "planner/solve/node_sharing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace wb {
namespace {

// A receiver of a node by what counts here.
using Mate = std::pair<std::uint32_t, std::uint32_t>;  // (turn, demand)

// A slice of one of the mates.
struct Wish {
  std::uint32_t slice = 0;
  std::uint32_t mate = 0;  // index
};

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
    for (const auto& [turn, demand] : mates) demands.push_back(plan_.demands[demand]);
    const std::vector<Wish> wishes = WishesOf(mates);
    std::vector<std::uint64_t> fetched(mates.size(), 0);
    // What one alone wants comes first: there is no choice.
    for (const std::span<const Wish> alike : ByBox(wishes)) {
      if (alike.size() == 1) fetched[alike.front().mate] += BytesOf(alike.front());
    }
    for (const std::span<const Wish> alike : ByBox(wishes)) {
      if (alike.size() == 1) continue;
      const std::uint32_t fetcher = LeastFetched(alike, fetched);
      fetched[fetcher] += BytesOf(alike.front());
      for (const Wish& wish : alike) {
        Demand& demand = demands[wish.mate];
        if (wish.mate == fetcher) continue;
        demand.pools[wish.slice - demand.begin] = PoolOf(mates[fetcher].first);
      }
    }
    std::vector<std::uint32_t> numbers;
    numbers.reserve(demands.size());
    for (Demand& demand : demands) {
      numbers.push_back(static_cast<std::uint32_t>(plan_.demands.size()));
      plan_.demands.push_back(std::move(demand));
    }
    return numbers;
  }

  // Those that come from afar, by source and box, one of each mate.
  std::vector<Wish> WishesOf(const std::vector<Mate>& mates) const {
    std::vector<Wish> wishes;
    for (std::uint32_t m = 0; m < mates.size(); ++m) {
      const Demand& demand = plan_.demands[mates[m].second];
      for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
        if (!plan_.pools[demand.pools[i - demand.begin]].local) wishes.push_back({i, m});
      }
    }
    std::sort(wishes.begin(), wishes.end(), [&](const Wish& a, const Wish& b) {
      const Slice& left = plan_.slices[a.slice];
      const Slice& right = plan_.slices[b.slice];
      if (left.source != right.source) return left.source < right.source;
      if (left.box != right.box) return left.box < right.box;
      return a.mate < b.mate;
    });
    return wishes;
  }

  bool SameBox(const Wish& a, const Wish& b) const {
    const Slice& left = plan_.slices[a.slice];
    const Slice& right = plan_.slices[b.slice];
    return left.source == right.source && left.box == right.box;
  }

  // Runs of one box each.
  std::vector<std::span<const Wish>> ByBox(std::span<const Wish> wishes) const {
    std::vector<std::span<const Wish>> runs;
    while (!wishes.empty()) {
      std::size_t count = 1;
      while (count < wishes.size() && SameBox(wishes.front(), wishes[count])) ++count;
      runs.push_back(wishes.first(count));
      wishes = wishes.subspan(count);
    }
    return runs;
  }

  static std::uint32_t LeastFetched(std::span<const Wish> alike,
                                    const std::vector<std::uint64_t>& fetched) {
    std::uint32_t least = alike.front().mate;
    for (const Wish& wish : alike) {
      if (fetched[wish.mate] < fetched[least]) least = wish.mate;
    }
    return least;
  }

  std::uint64_t BytesOf(const Wish& wish) const { return plan_.slices[wish.slice].bytes; }

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
