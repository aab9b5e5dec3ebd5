#include "planner/solve/ordered_job.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace wb {
namespace {

bool TensorBefore(const Tensor& a, const Tensor& b) {
  return a.name < b.name;
}
bool LayoutBefore(const Layout& a, const Layout& b) {
  return a.name < b.name;
}
bool PieceBefore(const Piece& a, const Piece& b) {
  return std::tie(a.tensor, a.box) < std::tie(b.tensor, b.box);
}

bool InOrder(const Job& job) {
  absl::flat_hash_set<const Piece*> seen;  // shared lists are looked at once
  return std::is_sorted(job.tensors.begin(), job.tensors.end(), TensorBefore) &&
         std::is_sorted(job.layouts.begin(), job.layouts.end(), LayoutBefore) &&
         std::all_of(job.layouts.begin(), job.layouts.end(), [&](const Layout& layout) {
           return !seen.insert(layout.pieces.data()).second ||
                  std::is_sorted(layout.pieces.begin(), layout.pieces.end(), PieceBefore);
         });
}

// The ids 0..size-1 in the order of what they name.
template <typename Id, typename T>
std::vector<Id> SortedIds(const std::vector<T>& table, bool (*before)(const T&, const T&)) {
  std::vector<Id> ids;
  for (std::uint32_t i = 0; i < table.size(); ++i) ids.emplace_back(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](Id a, Id b) { return before(table[a.value()], table[b.value()]); });
  return ids;
}

}  // namespace

OrderedJob::OrderedJob(const Job& job) : given_(&job) {
  if (InOrder(job)) return;
  tensors_ = SortedIds<TensorId>(job.tensors, TensorBefore);
  workers_ = SortedIds<WorkerIndex>(job.layouts, LayoutBefore);
  copy_.emplace();
  copy_->name = job.name;
  std::vector<TensorId> renumbered(tensors_.size());
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    copy_->tensors.push_back(job.tensor(tensors_[t]));
    renumbered[tensors_[t].value()] = TensorId(t);
  }
  for (const WorkerIndex worker : workers_) {
    Layout& layout = copy_->layouts.emplace_back(job.layout(worker));
    std::vector<Piece>& pieces = layout.pieces.Edit();
    for (Piece& piece : pieces) piece.tensor = renumbered[piece.tensor.value()];
    std::stable_sort(pieces.begin(), pieces.end(), PieceBefore);
  }
}

// The given job's ids have an order of their own.
void OrderedJob::RestorePools(Plan& plan) const {
  for (Pool& pool : plan.pools) {
    for (WorkerIndex& member : pool.members) member = workers_[member.value()];
    std::sort(pool.members.begin(), pool.members.end());
  }
  for (SplitSource& split : plan.split_sources) {
    std::vector<std::pair<WorkerIndex, std::uint32_t>> held;
    for (std::size_t i = 0; i < split.holders.size(); ++i) {
      held.emplace_back(workers_[split.holders[i].value()], split.pieces[i]);
    }
    std::sort(held.begin(), held.end());
    for (std::size_t i = 0; i < held.size(); ++i) {
      std::tie(split.holders[i], split.pieces[i]) = held[i];
    }
  }
}

void OrderedJob::Restore(Plan& plan) const {
  if (!copy_.has_value()) return;
  for (Slice& slice : plan.slices) slice.tensor = tensors_[slice.tensor.value()];
  RestorePools(plan);
  const auto restore = [&](std::vector<Tie>& ties) {
    for (Tie& tie : ties) tie = {tensors_[tie.alias.value()], tensors_[tie.target.value()]};
  };
  restore(plan.ties);
  for (PlanGroup& group : plan.groups) {
    restore(group.ties);
    for (PlanReceiver& receiver : group.receivers)
      receiver.worker = workers_[receiver.worker.value()];
    for (Quota& quota : group.quotas) quota.src = workers_[quota.src.value()];
  }
  for (TensorId& tensor : plan.unused) tensor = tensors_[tensor.value()];
}

}  // namespace wb
