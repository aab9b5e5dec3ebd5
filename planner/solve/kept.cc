#include "planner/solve/kept.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace wb {
namespace {

// Finds what of an earlier plan still holds. Used once by Keep.
class Keeper {
 public:
  Keeper(const Job& job, const PreviousPlan& previous) : job_(job), previous_(previous) {
    MatchTensors();
    absl::flat_hash_map<WorkerName, WorkerIndex> workers;
    for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
      workers.emplace(job.layouts[w].name, WorkerIndex(w));
    }
    for (const Layout& layout : previous.job.layouts) {
      const auto found = workers.find(layout.name);
      const bool same = found != workers.end() && SameLayout(layout, job.layout(found->second));
      workers_.push_back(same ? std::optional(found->second) : std::nullopt);
    }
  }

  std::vector<bool> Keep(Plan& plan) const {
    std::vector<bool> kept(plan.groups.size(), false);
    if (!SameFeatures(plan) || !SameWorkers(Role::kTrainer, {})) return kept;
    const std::vector<std::optional<std::uint32_t>> pools = MatchPools(plan);
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
      PlanGroup& group = plan.groups[g];
      const PlanGroup* before = previous_.plan.FindGroup(group.name);
      if (before == nullptr || !SameTies(before->ties, group.ties)) continue;
      kept[g] = SameWorkers(Role::kRollout, group.name) && TakeOver(*before, pools, plan, group);
    }
    DropRelayedOfOthers(plan, kept);
    return kept;
  }

 private:
  bool SameFeatures(const Plan& plan) const {
    return plan.fan_out == previous_.plan.fan_out &&
           plan.node_sharing == previous_.plan.node_sharing;
  }

  void MatchTensors() {
    const std::vector<Tensor>& before = previous_.job.tensors;
    same_tensors_ = job_.tensors == before;
    absl::flat_hash_map<absl::string_view, TensorId> ids;
    for (std::uint32_t t = 0; t < job_.tensors.size() && !same_tensors_; ++t) {
      ids.emplace(job_.tensors[t].name, TensorId(t));
    }
    for (std::uint32_t t = 0; t < before.size(); ++t) {
      const auto found = ids.find(before[t].name);
      std::optional<TensorId>& match = tensors_.emplace_back();
      if (same_tensors_) {
        match = TensorId(t);
      } else if (found != ids.end() && job_.tensor(found->second) == before[t]) {
        match = found->second;
      }
    }
  }

  bool SameLayout(const Layout& before, const Layout& now) const {
    return before.role == now.role && before.node == now.node &&
           SamePieces(before.pieces, now.pieces);
  }

  bool SamePieces(const SharedList<Piece>& before, const SharedList<Piece>& now) const {
    // A list that both jobs share says the same in both if both mean the same by its ids.
    if (same_tensors_ && before.data() == now.data()) return true;
    return std::equal(
        before.begin(), before.end(), now.begin(), now.end(), [&](const Piece& a, const Piece& b) {
          return tensors_[a.tensor.value()] == b.tensor && a.box == b.box && SameStorage(a, b);
        });
  }

  bool SameTies(std::span<const Tie> before, std::span<const Tie> now) const {
    return std::equal(
        before.begin(), before.end(), now.begin(), now.end(), [&](const Tie& a, const Tie& b) {
          return tensors_[a.alias.value()] == b.alias && tensors_[a.target.value()] == b.target;
        });
  }

  // Whether the workers of the role (and of the rollout group) are the same in both jobs.
  bool SameWorkers(Role role, std::string_view group) const {
    const auto counts = [&](const Layout& layout) {
      return layout.role == role && (role == Role::kTrainer || layout.name.group == group);
    };
    std::ptrdiff_t same = 0;
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (!counts(previous_.job.layouts[w])) continue;
      if (!workers_[w].has_value()) return false;
      ++same;
    }
    return same == std::count_if(job_.layouts.begin(), job_.layouts.end(), counts);
  }

  // The number in `plan` of each pool of the plan before.
  std::vector<std::optional<std::uint32_t>> MatchPools(const Plan& plan) const {
    std::map<std::pair<bool, std::vector<WorkerIndex>>, std::uint32_t> numbers;
    for (std::uint32_t p = 0; p < plan.pools.size(); ++p) {
      if (plan.pools[p].mate.has_value()) continue;
      numbers.emplace(std::pair(plan.pools[p].local, plan.pools[p].members), p);
    }
    std::vector<std::optional<std::uint32_t>> matches;
    for (const Pool& pool : previous_.plan.pools) {
      if (pool.mate.has_value()) {
        matches.emplace_back();
        continue;
      }
      std::vector<WorkerIndex> members;
      for (const WorkerIndex member : pool.members) members.push_back(*workers_[member.value()]);
      const auto found = numbers.find(std::pair(pool.local, std::move(members)));
      matches.push_back(found == numbers.end() ? std::nullopt : std::optional(found->second));
    }
    return matches;
  }

  // All that is relayed to the group.
  static bool GetsFromKept(const PlanGroup& group, const std::vector<bool>& kept) {
    return std::all_of(group.quotas.begin(), group.quotas.end(), [&](const Quota& quota) {
      return !quota.relay.has_value() || kept[*quota.relay];
    });
  }

  // A group is kept only if those are that it gets something from.
  static void DropRelayedOfOthers(Plan& plan, std::vector<bool>& kept) {
    for (bool dropped = true; dropped;) {
      dropped = false;
      for (std::size_t g = 0; g < kept.size(); ++g) {
        if (!kept[g] || GetsFromKept(plan.groups[g], kept)) continue;
        plan.groups[g].quotas.clear();
        kept[g] = false;
        dropped = true;
      }
    }
  }

  // False, and nothing done, when a pool is not in the plan, or a group that it gets something
  // from.
  bool TakeOver(const PlanGroup& before,
                const std::vector<std::optional<std::uint32_t>>& pools,
                const Plan& plan,
                PlanGroup& group) const {
    std::vector<Quota> quotas;
    quotas.reserve(before.quotas.size());
    for (const Quota& quota : before.quotas) {
      if (!pools[quota.pool].has_value()) return false;
      if (!quota.relay.has_value()) {
        quotas.push_back({*pools[quota.pool], *workers_[quota.src.value()], quota.bytes, {}});
        continue;
      }
      const PlanGroup* relay = plan.FindGroup(previous_.plan.groups[*quota.relay].name);
      if (relay == nullptr) return false;
      quotas.push_back({*pools[quota.pool], WorkerIndex(0), quota.bytes,
                        static_cast<std::uint32_t>(relay - plan.groups.data())});
    }
    std::stable_sort(quotas.begin(), quotas.end(),
                     [](const Quota& a, const Quota& b) { return a.pool < b.pool; });
    group.quotas = std::move(quotas);
    for (std::size_t r = 0; r < group.receivers.size(); ++r) {
      group.receivers[r].turn = before.receivers[r].turn;
    }
    return true;
  }

  const Job& job_;
  const PreviousPlan& previous_;
  bool same_tensors_ = false;                        // the tables of both jobs are equal
  std::vector<std::optional<TensorId>> tensors_;     // per tensor of the previous job
  std::vector<std::optional<WorkerIndex>> workers_;  // likewise, if its layout is the same
};

// To the groups of the workers.
void AddTie(const Job& job,
            std::span<const WorkerIndex> workers,
            const Tie& tie,
            std::map<std::string_view, std::vector<Tie>>& groups) {
  for (const WorkerIndex worker : workers) {
    std::vector<Tie>& wanted = groups.at(job.layout(worker).name.group);
    if (wanted.empty() || wanted.back() != tie) wanted.push_back(tie);
  }
}

}  // namespace

std::vector<PlanGroup> FindGroups(const Job& job,
                                  const LayoutClasses& classes,
                                  const PieceTable& pieces,
                                  const TieTable& ties) {
  std::map<std::string_view, std::vector<Tie>> found;
  for (const Layout& layout : job.layouts) {
    if (layout.role == Role::kRollout) found.try_emplace(layout.name.group);
  }
  for (const Tie& tie : ties.ties) {
    for (const PieceRef ref : pieces.destinations(tie.alias)) {
      AddTie(job, classes.members(ref.worker), tie, found);
    }
  }
  std::vector<PlanGroup> groups;
  groups.reserve(found.size());
  for (auto& [name, wanted] : found) {
    PlanGroup& group = groups.emplace_back();
    group.name = std::string(name);
    group.ties = std::move(wanted);
  }
  return groups;
}

std::vector<bool> Keep(const Job& job, const PreviousPlan& previous, Plan& plan) {
  return Keeper(job, previous).Keep(plan);
}

}  // namespace wb
