#include "planner/lower/plan_part.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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

// New ids 0..n-1 for the old ones in use, in the order of the old ones; then again for others.
// Costs as much as there are in use, however large the table is.
template <typename Id>
class Renumbering {
 public:
  explicit Renumbering(std::size_t table_size) : new_ids_(table_size, kUnused) {}
  void Use(Id id) {
    if (new_ids_[id.value()] != kUnused) return;
    new_ids_[id.value()] = 0;
    used_.push_back(id);
  }
  /// Gives out the new ids; returns the old ones in the new order.
  const std::vector<Id>& Assign() {
    std::sort(used_.begin(), used_.end());
    for (std::uint32_t i = 0; i < used_.size(); ++i) new_ids_[used_[i].value()] = i;
    return used_;
  }
  std::optional<Id> Find(Id id) const {
    const std::uint32_t found = new_ids_[id.value()];
    return found == kUnused ? std::nullopt : std::optional(Id(found));
  }
  void Clear() {
    for (const Id id : used_) new_ids_[id.value()] = kUnused;
    used_.clear();
  }

 private:
  static constexpr std::uint32_t kUnused = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> new_ids_;  // by old one
  std::vector<Id> used_;
};

// Which of some nodes a job's workers are on.
class NodesOfWorkers {
 public:
  NodesOfWorkers(const Job& job, std::span<const std::string> nodes) {
    absl::flat_hash_map<absl::string_view, std::uint32_t> numbers;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) numbers.emplace(nodes[n], n);
    of_worker_.reserve(job.layouts.size());
    for (const Layout& layout : job.layouts) {
      const auto found = numbers.find(layout.node);
      of_worker_.push_back(found == numbers.end() ? std::nullopt : std::optional(found->second));
    }
  }
  /// Nothing: on none of them.
  std::optional<std::uint32_t> Of(WorkerIndex worker) const { return of_worker_[worker.value()]; }

 private:
  std::vector<std::optional<std::uint32_t>> of_worker_;
};

// Makes the parts of one group, each of some of its moves.
class PartMaker {
 public:
  PartMaker(const Job& job, const PlanGroup& group)
      : job_(job), group_(group), workers_(job.layouts.size()), tensors_(job.tensors.size()) {}

  PlanPart Make(std::vector<Move> moves) {
    PlanPart part{job_.name, group_.name, group_.fingerprint, {}, {}, {}, std::move(moves)};
    for (const Move& move : part.moves) {
      workers_.Use(move.src);
      workers_.Use(move.dst);
      tensors_.Use(move.tensor);
    }
    for (const WorkerIndex worker : workers_.Assign()) {
      part.workers.push_back({job_.layout(worker).name, job_.layout(worker).node});
    }
    for (const TensorId tensor : tensors_.Assign()) part.tensors.push_back(job_.tensor(tensor));
    for (const Tie& tie : group_.ties) {
      const std::optional<TensorId> target = tensors_.Find(tie.target);
      if (target.has_value()) part.ties.push_back({job_.tensor(tie.alias).name, *target});
    }
    for (Move& move : part.moves) {
      move.src = *workers_.Find(move.src);
      move.dst = *workers_.Find(move.dst);
      move.tensor = *tensors_.Find(move.tensor);
    }
    workers_.Clear();
    tensors_.Clear();
    return part;
  }

 private:
  const Job& job_;
  const PlanGroup& group_;
  Renumbering<WorkerIndex> workers_;
  Renumbering<TensorId> tensors_;
};

}  // namespace

void MakePlanParts(const Job& job,
                   const Plan& plan,
                   const std::string& group_name,
                   std::span<const std::string> nodes,
                   absl::FunctionRef<void(std::size_t node, PlanPart part)> take) {
  const PlanGroup& group = *plan.FindGroup(group_name);
  const NodesOfWorkers here(job, nodes);
  const std::vector<Move> moves = MovesOf(plan, group, [&](WorkerIndex src, WorkerIndex dst) {
    return here.Of(src).has_value() || here.Of(dst).has_value();
  });
  std::vector<std::vector<const Move*>> of_node(nodes.size());
  for (const Move& move : moves) {
    const std::optional<std::uint32_t> from = here.Of(move.src);
    const std::optional<std::uint32_t> to = here.Of(move.dst);
    if (from.has_value()) of_node[*from].push_back(&move);
    if (to.has_value() && to != from) of_node[*to].push_back(&move);
  }
  PartMaker maker(job, group);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    std::vector<Move> own;
    own.reserve(of_node[n].size());
    for (const Move* move : of_node[n]) own.push_back(*move);
    take(n, maker.Make(std::move(own)));
  }
}

PlanPart MakePlanPart(const Job& job,
                      const Plan& plan,
                      const std::string& group,
                      const std::string& node) {
  PlanPart made;
  MakePlanParts(job, plan, group, {&node, 1},
                [&](std::size_t, PlanPart part) { made = std::move(part); });
  return made;
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
