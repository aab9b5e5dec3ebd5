#include "planner/lower/plan_part.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "planner/model/describe.h"
#include "planner/model/plan_moves.h"

namespace wb {
namespace {

// New ids 0..n-1 for the old ones in use, in the order of the old ones.
template <typename Id>
class Renumbering {
 public:
  explicit Renumbering(std::size_t table_size) : new_ids_(table_size) {}
  void Use(Id id) { new_ids_[id.value()] = Id(0); }
  /// Gives out the new ids; returns the old ones in the new order.
  std::vector<Id> Assign() {
    std::vector<Id> used;
    for (std::uint32_t old = 0; old < new_ids_.size(); ++old) {
      if (!new_ids_[old].has_value()) continue;
      new_ids_[old] = Id(static_cast<std::uint32_t>(used.size()));
      used.emplace_back(old);
    }
    return used;
  }
  std::optional<Id> Find(Id id) const { return new_ids_[id.value()]; }

 private:
  std::vector<std::optional<Id>> new_ids_;
};

}  // namespace

PlanPart MakePlanPart(const Job& job,
                      const Plan& plan,
                      const std::string& group_name,
                      const std::string& node) {
  const PlanGroup& group = *plan.FindGroup(group_name);
  PlanPart part{job.name, group.name, group.fingerprint, {}, {}, {}, {}};
  Renumbering<WorkerIndex> workers(job.layouts.size());
  Renumbering<TensorId> tensors(job.tensors.size());
  std::vector<bool> here(job.layouts.size());
  for (std::size_t w = 0; w < here.size(); ++w) here[w] = job.layouts[w].node == node;
  part.moves = MovesOf(plan, group, [&](WorkerIndex src, WorkerIndex dst) {
    return here[src.value()] || here[dst.value()];
  });
  for (const Move& move : part.moves) {
    workers.Use(move.src);
    workers.Use(move.dst);
    tensors.Use(move.tensor);
  }
  for (const WorkerIndex worker : workers.Assign()) {
    part.workers.push_back({job.layout(worker).name, job.layout(worker).node});
  }
  for (const TensorId tensor : tensors.Assign()) part.tensors.push_back(job.tensor(tensor));
  for (const Tie& tie : group.ties) {
    const std::optional<TensorId> target = tensors.Find(tie.target);
    if (target.has_value()) part.ties.push_back({job.tensor(tie.alias).name, *target});
  }
  for (Move& move : part.moves) {
    move.src = *workers.Find(move.src);
    move.dst = *workers.Find(move.dst);
    move.tensor = *tensors.Find(move.tensor);
  }
  return part;
}

absl::StatusOr<Layout> BindLayout(const Registration& registration, const PlanPart& part) {
  absl::flat_hash_map<absl::string_view, TensorId> ids;
  for (std::uint32_t t = 0; t < part.tensors.size(); ++t) {
    ids.emplace(part.tensors[t].name, TensorId(t));
  }
  for (const PlanTie& tie : part.ties) ids.emplace(tie.alias, tie.target);

  std::vector<std::optional<TensorId>> bound(registration.tensors.size());
  for (std::size_t t = 0; t < bound.size(); ++t) {
    const Tensor& own = registration.tensors[t];
    const auto found = ids.find(own.name);
    if (found == ids.end()) continue;
    const Tensor& planned = part.tensors[found->second.value()];
    if (own.dtype != planned.dtype || own.shape != planned.shape) {
      return absl::FailedPreconditionError(absl::StrCat(
          "tensor ", own.name, " is ", Describe(own), " at ", registration.layout.name.ToString(),
          " and ", Describe(planned), " in the plan of group ", part.group));
    }
    bound[t] = found->second;
  }
  Layout layout = registration.layout;
  std::vector<Piece> pieces;
  for (const Piece& piece : registration.layout.pieces) {
    const std::optional<TensorId> id = bound[piece.tensor.value()];
    if (!id.has_value()) continue;
    pieces.push_back(piece);
    pieces.back().tensor = *id;
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.tensor, a.box) < std::tie(b.tensor, b.box);
  });
  layout.pieces = std::move(pieces);
  return layout;
}

}  // namespace wb
