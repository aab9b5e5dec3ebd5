#include "planner/explain/plan_diff.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/model/describe.h"

namespace wb {
namespace {

constexpr std::size_t kNics = 5;

// Calls `visit(a or nullptr, b or nullptr)` for each key of two ranges in order of their keys.
template <typename Range, typename KeyOf, typename Visit>
void MatchInOrder(const Range& a, const Range& b, KeyOf key_of, Visit visit) {
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    if (key_of(*i) < key_of(*j)) {
      visit(&*i++, nullptr);
    } else if (key_of(*j) < key_of(*i)) {
      visit(nullptr, &*j++);
    } else {
      visit(&*i++, &*j++);
    }
  }
  for (; i != a.end(); ++i) visit(&*i, nullptr);
  for (; j != b.end(); ++j) visit(nullptr, &*j);
}

// Tensors whose names are in both jobs.
struct CommonTensors {
  std::size_t count = 0;
  std::vector<std::pair<const Tensor*, const Tensor*>> reshaped;  // those of two shapes
};

CommonTensors DiffTensors(const Job& before, const Job& job, PlanDiff& diff) {
  CommonTensors common;
  MatchInOrder(
      before.tensors, job.tensors, [](const Tensor& tensor) -> const auto& { return tensor.name; },
      [&](const Tensor* was, const Tensor* is) {
        if (was == nullptr) return diff.tensors_added.push_back(is->name);
        if (is == nullptr) return diff.tensors_removed.push_back(was->name);
        ++common.count;
        const bool reshaped = was->shape != is->shape;
        if (reshaped) common.reshaped.emplace_back(was, is);
        if (reshaped || was->dtype != is->dtype) diff.tensors_changed.push_back(is->name);
      });
  return common;
}

std::optional<Refusal> WhyTwoModels(const Job& before,
                                    const Job& job,
                                    const CommonTensors& common) {
  if (common.count == 0) {
    return Refusal{"diff", "", "",
                   absl::StrCat("the plans are of two models: ", before.name, " has ",
                                before.tensors.size(), " tensors, ", job.name, " has ",
                                job.tensors.size(), ", and no name is in both")};
  }
  if (common.reshaped.size() * 2 <= common.count) return std::nullopt;
  const auto& [was, is] = common.reshaped.front();
  return Refusal{
      "diff", is->name, "",
      absl::StrCat("the plans are of two models: of ", common.count, " tensors in both, ",
                   common.reshaped.size(), " have another shape; ", is->name, " is ",
                   Describe(*was), " in ", before.name, " and ", Describe(*is), " in ", job.name)};
}

void DiffGroups(const Plan& before, const Plan& plan, PlanDiff& diff) {
  MatchInOrder(
      before.groups, plan.groups, [](const PlanGroup& group) -> const auto& { return group.name; },
      [&](const PlanGroup* was, const PlanGroup* is) {
        if (was == nullptr) {
          diff.groups_added.push_back(is->name);
        } else if (is == nullptr) {
          diff.groups_removed.push_back(was->name);
        } else if (was->fingerprint == is->fingerprint) {
          diff.groups_unchanged.push_back(is->name);
        } else {
          diff.groups_changed.push_back(is->name);
        }
      });
}

void DiffNics(const PreviousPlan& before, const Job& job, const Plan& plan, PlanDiff& diff) {
  diff.loads_before = NicLoads(before.job, before.plan);
  diff.loads_after = NicLoads(job, plan);
  const auto load_of = [](const Job& of, const std::vector<NicLoad>& its, const Layout* layout) {
    return layout == nullptr ? NicLoad{}
                             : its[static_cast<std::size_t>(layout - of.layouts.data())];
  };
  std::vector<NicChange> changes;
  MatchInOrder(
      before.job.layouts, job.layouts,
      [](const Layout& layout) -> const auto& { return layout.name; },
      [&](const Layout* was, const Layout* is) {
        if (was == nullptr) diff.workers_added.push_back(is->name.ToString());
        if (is == nullptr) diff.workers_removed.push_back(was->name.ToString());
        const NicLoad old_load = load_of(before.job, diff.loads_before, was);
        const NicLoad new_load = load_of(job, diff.loads_after, is);
        for (const Direction direction : {Direction::kOut, Direction::kIn}) {
          const NicChange change{(is == nullptr ? was : is)->name, direction,
                                 BytesOf(old_load, direction), BytesOf(new_load, direction)};
          if (change.before != change.after) changes.push_back(change);
        }
      });
  const auto size = [](const NicChange& change) {
    return std::max(change.before, change.after) - std::min(change.before, change.after);
  };
  std::stable_sort(changes.begin(), changes.end(),
                   [&](const NicChange& a, const NicChange& b) { return size(a) > size(b); });
  diff.nics_changed = changes.size();
  changes.resize(std::min(changes.size(), kNics));
  diff.nics = std::move(changes);
}

}  // namespace

std::variant<PlanDiff, Refusals> DiffPlans(const PreviousPlan& before,
                                           const Job& job,
                                           const Plan& plan) {
  PlanDiff diff;
  const CommonTensors common = DiffTensors(before.job, job, diff);
  if (std::optional<Refusal> refusal = WhyTwoModels(before.job, job, common)) {
    return Refusals{*std::move(refusal)};
  }
  DiffGroups(before.plan, plan, diff);
  DiffNics(before, job, plan, diff);
  return diff;
}

}  // namespace wb
