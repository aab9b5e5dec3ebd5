#include "planner/explain/binding.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/container/flat_hash_map.h"

#include "planner/solve/max_flow.h"

namespace wb {
namespace {

// The flow of the argument in planner/solve/bound.h with one byte less than the bound for each
// sender: not all bytes pass, and the minimum cut names a set U of senders with
// V(U) > (bound - 1) |U|. No set has V(U) > bound |U|, so the bound is U's share, rounded up; and
// of parts of U that have nothing to do with each other, each has that share.
class TightSenders {
 public:
  explicit TightSenders(const Plan& plan) : plan_(plan), bytes_(plan.pools.size(), 0) {
    for (const PlanGroup& group : plan.groups) {
      for (const Quota& quota : group.quotas) {
        if (!plan.pools[quota.pool].local) bytes_[quota.pool] += quota.bytes;
      }
    }
    for (std::uint32_t p = 0; p < bytes_.size(); ++p) {
      if (bytes_[p] == 0) continue;
      pools_.push_back(p);
      for (const WorkerIndex member : plan.pools[p].members) senders_.push_back(member);
    }
    std::sort(senders_.begin(), senders_.end());
    senders_.erase(std::unique(senders_.begin(), senders_.end()), senders_.end());
  }

  Binding Find() && {
    MaxFlow flow(2 + pools_.size() + senders_.size());
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      flow.AddEdge(0, 2 + i, bytes_[pools_[i]]);
      for (const WorkerIndex member : plan_.pools[pools_[i]].members) {
        flow.AddEdge(2 + i, SenderNode(member), bytes_[pools_[i]]);
      }
    }
    for (const WorkerIndex sender : senders_) {
      flow.AddEdge(SenderNode(sender), 1, plan_.bounds.direct - 1);
    }
    flow.Augment(0, 1);
    for (const WorkerIndex sender : senders_) {
      if (flow.reachable(SenderNode(sender))) tight_.push_back(sender);
    }
    return FirstPart();
  }

 private:
  std::size_t Number(WorkerIndex sender) const {
    return static_cast<std::size_t>(std::lower_bound(senders_.begin(), senders_.end(), sender) -
                                    senders_.begin());
  }
  std::size_t SenderNode(WorkerIndex sender) const { return 2 + pools_.size() + Number(sender); }

  bool IsTight(WorkerIndex sender) const {
    return std::binary_search(tight_.begin(), tight_.end(), sender);
  }

  // The part of the tight set around its first sender: pools inside the set connect its members.
  Binding FirstPart() const {
    if (tight_.empty()) return {};
    std::vector<std::size_t> part(senders_.size());  // union-find: towards the part's first sender
    std::iota(part.begin(), part.end(), std::size_t{0});
    const auto root = [&](std::size_t sender) {
      while (part[sender] != sender) sender = part[sender];
      return sender;
    };
    std::vector<std::uint32_t> inside;
    for (const std::uint32_t p : pools_) {
      const std::vector<WorkerIndex>& members = plan_.pools[p].members;
      if (!std::all_of(members.begin(), members.end(),
                       [&](WorkerIndex member) { return IsTight(member); })) {
        continue;
      }
      inside.push_back(p);
      for (const WorkerIndex member : members) {
        const auto [low, high] = std::minmax({root(Number(members.front())), root(Number(member))});
        part[high] = low;
      }
    }
    Binding binding{Binding::Kind::kEgress, {}, 0};
    const std::size_t first = root(Number(tight_.front()));
    for (const WorkerIndex sender : tight_) {
      if (root(Number(sender)) == first) binding.workers.push_back(sender);
    }
    for (const std::uint32_t p : inside) {
      if (root(Number(plan_.pools[p].members.front())) == first) binding.bytes += bytes_[p];
    }
    return binding;
  }

  const Plan& plan_;
  std::vector<std::uint64_t> bytes_;  // per pool, sent through NICs
  std::vector<std::uint32_t> pools_;  // those with bytes
  std::vector<WorkerIndex> senders_;  // their members, ascending
  std::vector<WorkerIndex> tight_;    // ascending
};

}  // namespace

Binding FindBinding(const Plan& plan, std::span<const NicLoad> loads) {
  const std::uint64_t bound = plan.bounds.direct;
  if (bound == 0) return {};
  Binding binding{Binding::Kind::kIngress, {}, bound};
  for (std::uint32_t w = 0; w < loads.size(); ++w) {
    if (loads[w].in == bound) binding.workers.emplace_back(w);
  }
  if (!binding.workers.empty()) return binding;
  return TightSenders(plan).Find();
}

}  // namespace wb
