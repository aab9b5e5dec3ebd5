#include "planner/solve/kept.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace wb {
namespace {

// Finds what of an earlier plan still holds. Used once by FindKept.
class Keeper {
 public:
  Keeper(const Job& job, const PreviousPlan& previous) : job_(job), previous_(previous) {
    absl::flat_hash_map<absl::string_view, TensorId> tensors;
    for (std::uint32_t t = 0; t < job.tensors.size(); ++t) {
      tensors.emplace(job.tensors[t].name, TensorId(t));
    }
    for (const Tensor& tensor : previous.job.tensors) {
      const auto found = tensors.find(tensor.name);
      const bool same = found != tensors.end() && job.tensor(found->second) == tensor;
      tensors_.push_back(same ? std::optional(found->second) : std::nullopt);
    }
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

  KeptMoves Find(const std::vector<PlanGroup>& groups) const {
    KeptMoves kept;
    kept.destinations.resize(job_.layouts.size(), false);
    if (!SameWorkers(Role::kTrainer, {})) return kept;
    for (const PlanGroup& group : groups) {
      const PlanGroup* before = previous_.plan.FindGroup(group.name);
      if (before == nullptr || !SameTies(before->ties, group.ties)) continue;
      if (SameWorkers(Role::kRollout, group.name)) Keep(*before, kept);
    }
    return kept;
  }

 private:
  bool SameLayout(const Layout& before, const Layout& now) const {
    return before.role == now.role && before.node == now.node &&
           std::equal(before.pieces.begin(), before.pieces.end(), now.pieces.begin(),
                      now.pieces.end(), [&](const Piece& a, const Piece& b) {
                        return tensors_[a.tensor.value()] == b.tensor && a.box == b.box &&
                               SameStorage(a, b);
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

  void Keep(const PlanGroup& group, KeptMoves& kept) const {
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (previous_.job.layouts[w].name.group != group.name) continue;
      kept.destinations[workers_[w]->value()] = true;
    }
    for (std::size_t i = group.begin; i < group.end; ++i) {
      Move& move = kept.moves.emplace_back(previous_.plan.moves[i]);
      move.src = *workers_[move.src.value()];
      move.dst = *workers_[move.dst.value()];
      move.tensor = *tensors_[move.tensor.value()];
    }
  }

  const Job& job_;
  const PreviousPlan& previous_;
  std::vector<std::optional<TensorId>> tensors_;     // per tensor of the previous job
  std::vector<std::optional<WorkerIndex>> workers_;  // likewise, if its layout is the same
};

}  // namespace

std::vector<PlanGroup> FindGroups(const Job& job, const PieceTable& pieces, const TieTable& ties) {
  std::map<std::string_view, std::vector<Tie>> found;
  for (const Layout& layout : job.layouts) {
    if (layout.role == Role::kRollout) found.try_emplace(layout.name.group);
  }
  for (const Tie& tie : ties.ties) {
    for (const PieceRef ref : pieces.destinations(tie.alias)) {
      std::vector<Tie>& wanted = found.at(job.layout(ref.worker).name.group);
      if (wanted.empty() || wanted.back() != tie) wanted.push_back(tie);
    }
  }
  std::vector<PlanGroup> groups;
  groups.reserve(found.size());
  for (auto& [name, wanted] : found) {
    groups.push_back({std::string(name), 0, 0, std::move(wanted), Fingerprint()});
  }
  return groups;
}

KeptMoves FindKept(const Job& job,
                   const std::vector<PlanGroup>& groups,
                   const PreviousPlan& previous) {
  return Keeper(job, previous).Find(groups);
}

}  // namespace wb
