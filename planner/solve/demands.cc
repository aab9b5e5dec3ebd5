#include "planner/solve/demands.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <xxhash.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace wb {
namespace {

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  return XXH3_64bits_withSeed(&value, sizeof(value), hash);
}

std::uint64_t Mix(std::uint64_t hash, const Box& box) {
  for (const std::int64_t lo : box.lo()) hash = Mix(hash, static_cast<std::uint64_t>(lo));
  for (const std::int64_t hi : box.hi()) hash = Mix(hash, static_cast<std::uint64_t>(hi));
  return hash;
}

using Workers = std::vector<WorkerIndex>;

// The trainers on each node that has any.
class TrainersByNode {
 public:
  explicit TrainersByNode(const Job& job) {
    for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
      if (job.layouts[w].role == Role::kTrainer) {
        by_node_[absl::string_view(job.layouts[w].node)].emplace_back(w);
      }
    }
  }
  /// Ascending; nullptr when there are none.
  const Workers* Of(const std::string& node) const {
    const auto found = by_node_.find(node);
    return found == by_node_.end() ? nullptr : &found->second;
  }

 private:
  absl::flat_hash_map<absl::string_view, Workers> by_node_;
};

// Used once by FillDemands.
class DemandMaker {
 public:
  DemandMaker(const Job& job, const LayoutClasses& classes, SliceIndex index, Plan& plan)
      : job_(job),
        classes_(classes),
        index_(std::move(index)),
        plan_(plan),
        trainers_(job),
        everywhere_(index_.sets.size()) {}

  Workers Make() && {
    MakeDemands();
    MakeReceivers();
    Workers senders = OrderSenders();
    OrderPools(senders);
    MakeSplitSources();
    plan_.slices = std::move(index_.slices);
    return senders;
  }

 private:
  // What a worker wants, and the trainers near it: what its demand follows from.
  using Place = std::pair<std::size_t, const Workers*>;

  void MakeDemands() {
    demand_.resize(job_.layouts.size());
    std::map<Place, std::uint32_t> known;
    for (std::size_t i = 0; i < index_.wanted.size(); ++i) {
      for (const WorkerIndex worker : classes_.members(index_.wanted[i].worker)) {
        const Workers* near = trainers_.Of(job_.layout(worker).node);
        const auto [found, fresh] = known.try_emplace({i, near});
        if (fresh) found->second = AddDemand(index_.wanted[i], near);
        demand_[worker.value()] = found->second;
      }
    }
  }

  std::uint32_t AddDemand(const Wanted& wanted, const Workers* near) {
    Demand demand{wanted.begin, wanted.end, {}};
    demand.pools.reserve(wanted.end - wanted.begin);
    for (std::uint32_t i = wanted.begin; i < wanted.end; ++i) {
      const SourceSetId set = index_.sources[index_.slices[i].source].holders;
      std::optional<std::uint32_t> pool;
      if (near != nullptr) pool = NearPool(set, *near);
      demand.pools.push_back(pool.has_value() ? *pool : PoolOf(set));
    }
    plan_.demands.push_back(std::move(demand));
    return static_cast<std::uint32_t>(plan_.demands.size() - 1);
  }

  // All holders: those of the set, and the trainers like them.
  Workers HoldersOf(SourceSetId set) const {
    Workers holders;
    for (const WorkerIndex first : index_.sets.members(set)) {
      const std::span<const WorkerIndex> alike = classes_.members(first);
      holders.insert(holders.end(), alike.begin(), alike.end());
    }
    std::sort(holders.begin(), holders.end());
    return holders;
  }

  std::uint32_t PoolOf(SourceSetId set) {
    std::optional<std::uint32_t>& pool = everywhere_[set.value()];
    if (!pool.has_value()) pool = AddPool({HoldersOf(set), false, {}});
    return *pool;
  }

  std::optional<std::uint32_t> NearPool(SourceSetId set, const Workers& near) {
    const auto [known, fresh] = near_.try_emplace({set, &near});
    if (!fresh) return known->second;
    Workers both;
    const Workers holders = HoldersOf(set);
    std::set_intersection(holders.begin(), holders.end(), near.begin(), near.end(),
                          std::back_inserter(both));
    if (both.empty()) return std::nullopt;
    const auto [pool, added] = near_pools_.try_emplace(both);
    if (added) pool->second = AddPool({std::move(both), true, {}});
    known->second = pool->second;
    return pool->second;
  }

  std::uint32_t AddPool(Pool pool) {
    plan_.pools.push_back(std::move(pool));
    return static_cast<std::uint32_t>(plan_.pools.size() - 1);
  }

  // Turns in the order of where slices land and which of them cross between nodes.
  // Of each demand: where its slices land, and which of them cross between nodes.
  std::vector<std::uint64_t> DemandKeys() const {
    std::vector<std::uint64_t> names;  // per tensor
    names.reserve(job_.tensors.size());
    for (const Tensor& tensor : job_.tensors) {
      names.push_back(XXH3_64bits(tensor.name.data(), tensor.name.size()));
    }
    std::vector<std::uint64_t> keys;
    keys.reserve(plan_.demands.size());
    for (const Demand& demand : plan_.demands) {
      std::uint64_t key = 0;
      for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
        const Slice& slice = index_.slices[i];
        const bool local = plan_.pools[demand.pools[i - demand.begin]].local;
        key = Mix(Mix(Mix(Mix(key, names[slice.tensor.value()]), slice.box), slice.landing),
                  local ? 1 : 0);
      }
      keys.push_back(key);
    }
    return keys;
  }

  void MakeReceivers() {
    const std::vector<std::uint64_t> keys = DemandKeys();
    std::size_t worker = 0;
    for (PlanGroup& group : plan_.groups) {
      while (job_.layouts[worker].name.group != group.name) ++worker;
      for (; worker < job_.layouts.size() && job_.layouts[worker].name.group == group.name;
           ++worker) {
        group.receivers.push_back(
            {WorkerIndex(static_cast<std::uint32_t>(worker)), demand_[worker], 0});
      }
      GiveTurns(keys, group);
    }
  }

  static void GiveTurns(const std::vector<std::uint64_t>& keys, PlanGroup& group) {
    std::vector<PlanReceiver*> turns;
    turns.reserve(group.receivers.size());
    for (PlanReceiver& receiver : group.receivers) turns.push_back(&receiver);
    std::stable_sort(turns.begin(), turns.end(), [&](const PlanReceiver* a, const PlanReceiver* b) {
      return keys[a->demand] < keys[b->demand];
    });
    for (std::uint32_t turn = 0; turn < turns.size(); ++turn) turns[turn]->turn = turn;
  }

  // By the list of source boxes that a trainer holds, and in which piece of its own.
  Workers OrderSenders() const {
    std::vector<std::uint64_t> keys(job_.layouts.size(), 0);  // of the first of each class
    for (std::uint32_t s = 0; s < index_.sources.size(); ++s) {
      const SourceBox& source = index_.sources[s];
      const std::span<const WorkerIndex> holders = index_.sets.members(source.holders);
      for (std::size_t i = 0; i < holders.size(); ++i) {
        std::uint64_t& key = keys[holders[i].value()];
        key = Mix(key, s);
        if (!source.holder_pieces.empty()) key = Mix(key, source.holder_pieces[i]);
      }
    }
    Workers senders;
    for (std::uint32_t w = 0; w < job_.layouts.size(); ++w) {
      if (job_.layouts[w].role == Role::kTrainer) senders.emplace_back(w);
    }
    std::stable_sort(senders.begin(), senders.end(), [&](WorkerIndex a, WorkerIndex b) {
      return keys[classes_.first(a).value()] < keys[classes_.first(b).value()];
    });
    return senders;
  }

  std::vector<std::uint64_t> PoolBytes() const {
    std::vector<std::uint64_t> receivers(plan_.demands.size(), 0);
    for (const PlanGroup& group : plan_.groups) {
      for (const PlanReceiver& receiver : group.receivers) ++receivers[receiver.demand];
    }
    std::vector<std::uint64_t> bytes(plan_.pools.size(), 0);
    for (std::size_t d = 0; d < plan_.demands.size(); ++d) {
      const Demand& demand = plan_.demands[d];
      for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
        bytes[demand.pools[i - demand.begin]] += index_.slices[i].bytes * receivers[d];
      }
    }
    return bytes;
  }

  void OrderPools(const Workers& senders) {
    std::vector<std::uint32_t> number(job_.layouts.size());
    for (std::uint32_t s = 0; s < senders.size(); ++s) number[senders[s].value()] = s;
    const std::vector<std::uint64_t> bytes = PoolBytes();
    std::vector<std::vector<std::uint32_t>> numbers;
    for (const Pool& pool : plan_.pools) {
      numbers.emplace_back();
      for (const WorkerIndex member : pool.members) {
        numbers.back().push_back(number[member.value()]);
      }
      std::sort(numbers.back().begin(), numbers.back().end());
    }
    std::vector<std::uint32_t> order(plan_.pools.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (numbers[a].size() != numbers[b].size()) return numbers[a].size() < numbers[b].size();
      if (bytes[a] != bytes[b]) return bytes[a] > bytes[b];
      if (numbers[a] != numbers[b]) return numbers[a] < numbers[b];
      return plan_.pools[a].local < plan_.pools[b].local;
    });
    std::vector<Pool> pools;
    std::vector<std::uint32_t> position(order.size());
    for (const std::uint32_t pool : order) {
      position[pool] = static_cast<std::uint32_t>(pools.size());
      pools.push_back(std::move(plan_.pools[pool]));
    }
    plan_.pools = std::move(pools);
    for (Demand& demand : plan_.demands) {
      for (std::uint32_t& pool : demand.pools) pool = position[pool];
    }
  }

  // By all holders of a source box, which piece of theirs is around it.
  std::vector<std::pair<WorkerIndex, std::uint32_t>> PiecesHeld(const SourceBox& source) const {
    const std::span<const WorkerIndex> firsts = index_.sets.members(source.holders);
    std::vector<std::pair<WorkerIndex, std::uint32_t>> held;
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      for (const WorkerIndex worker : classes_.members(firsts[i])) {
        held.emplace_back(worker, source.holder_pieces[i]);
      }
    }
    return held;
  }

  void MakeSplitSources() {
    for (std::uint32_t s = 0; s < index_.sources.size(); ++s) {
      const SourceBox& source = index_.sources[s];
      if (source.holder_pieces.empty()) continue;
      std::vector<std::pair<WorkerIndex, std::uint32_t>> held = PiecesHeld(source);
      std::sort(held.begin(), held.end());
      SplitSource split{s, {}, {}};
      for (const auto& [worker, piece] : held) {
        split.holders.push_back(worker);
        split.pieces.push_back(piece);
      }
      plan_.split_sources.push_back(std::move(split));
    }
  }

  const Job& job_;
  const LayoutClasses& classes_;
  SliceIndex index_;
  Plan& plan_;
  TrainersByNode trainers_;
  std::vector<std::uint32_t> demand_;                     // per worker
  std::vector<std::optional<std::uint32_t>> everywhere_;  // per source set: its pool
  std::map<std::pair<SourceSetId, const Workers*>, std::optional<std::uint32_t>> near_;
  std::map<Workers, std::uint32_t> near_pools_;
};

}  // namespace

std::vector<WorkerIndex> FillDemands(const Job& job,
                                     const LayoutClasses& classes,
                                     SliceIndex index,
                                     Plan& plan) {
  return DemandMaker(job, classes, std::move(index), plan).Make();
}

}  // namespace wb
