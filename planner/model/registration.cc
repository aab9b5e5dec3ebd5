#include "planner/model/registration.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/model/describe.h"

namespace wb {
namespace {

// Gaps in a group's ranks are told as ranges, at most this many.
constexpr std::size_t kMaxGapsTold = 8;

// Puts registrations together in the order of their workers' names, and notes every reason why
// they do not fit. Used once by MakeJob.
class JobBuilder {
 public:
  explicit JobBuilder(std::span<const Registration> registrations) {
    ordered_.reserve(registrations.size());
    for (const Registration& registration : registrations) ordered_.push_back(&registration);
    std::stable_sort(ordered_.begin(), ordered_.end(),
                     [](const Registration* a, const Registration* b) {
                       return a->layout.name < b->layout.name;
                     });
  }

  std::variant<Job, Refusals> Build() && {
    CheckCounts();
    CheckJobNames();
    CheckGroups();
    CheckGroupRoles();
    MergeTensors();
    if (!refusals_.empty()) return std::move(refusals_);
    return Assemble();
  }

 private:
  // A tensor as it is declared first, and by whom; `owner` is the first trainer that declares it.
  struct Declared {
    const Tensor* tensor = nullptr;
    const WorkerName* by = nullptr;
    const Tensor* owned = nullptr;
    const WorkerName* owner = nullptr;
    TensorId id;
  };

  void Refuse(std::string kind, std::string tensor, std::string worker, std::string text) {
    refusals_.push_back({std::move(kind), std::move(tensor), std::move(worker), std::move(text)});
  }

  void CheckCounts() {
    if (ordered_.size() <= kMaxWorkers) return;
    Refuse("limit", "", "",
           absl::StrCat("job has ", ordered_.size(), " workers, want at most ", kMaxWorkers));
  }

  void CheckJobNames() {
    for (const Registration* registration : ordered_) {
      const Registration& first = *ordered_.front();
      if (registration->job == first.job) continue;
      Refuse("name", "", registration->layout.name.ToString(),
             absl::StrCat("worker ", registration->layout.name.ToString(), " is of job \"",
                          registration->job, "\" and worker ", first.layout.name.ToString(),
                          " of job \"", first.job, "\", want one job"));
    }
  }

  // Ranks unique and without gap, one role a group. `ordered_` holds groups as runs.
  void CheckGroups() {
    for (std::size_t begin = 0; begin < ordered_.size();) {
      const std::string& group = ordered_[begin]->layout.name.group;
      std::size_t end = begin;
      while (end < ordered_.size() && ordered_[end]->layout.name.group == group) ++end;
      CheckGroup(std::span(ordered_).subspan(begin, end - begin));
      begin = end;
    }
  }

  void CheckGroup(std::span<const Registration* const> members) {
    const Layout& first = members.front()->layout;
    (first.role == Role::kTrainer ? trainer_groups_ : rollout_groups_).push_back(first.name.group);
    std::vector<std::string> gaps;
    std::int64_t next = 0;
    for (const Registration* member : members) {
      const Layout& layout = member->layout;
      if (layout.role != first.role) {
        Refuse("role", "", layout.name.ToString(),
               absl::StrCat("worker ", layout.name.ToString(), " is a ", RoleName(layout.role),
                            " and ", first.name.ToString(), " a ", RoleName(first.role),
                            ", want one role in a group"));
      }
      if (layout.name.rank < next) {
        Refuse("rank", "", layout.name.ToString(),
               absl::StrCat("worker ", layout.name.ToString(),
                            " is there twice, want each rank of a group once"));
        continue;
      }
      if (layout.name.rank > next) gaps.push_back(RangeText(next, layout.name.rank - 1));
      next = std::int64_t{layout.name.rank} + 1;
    }
    if (!gaps.empty()) RefuseGaps(first.name.group, gaps, next - 1);
  }

  static std::string RangeText(std::int64_t first, std::int64_t last) {
    return first == last ? absl::StrCat(first) : absl::StrCat(first, "..", last);
  }

  void RefuseGaps(const std::string& group,
                  const std::vector<std::string>& gaps,
                  std::int64_t highest) {
    const std::size_t told = std::min(gaps.size(), kMaxGapsTold);
    std::string text = absl::StrCat(
        "group ", group, ": missing rank ",
        absl::StrJoin(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(told), ", "));
    if (told < gaps.size()) absl::StrAppend(&text, " and more");
    absl::StrAppend(&text, ", want ranks 0..", highest, " without gap");
    Refuse("rank", "", group, std::move(text));
  }

  void CheckGroupRoles() {
    if (trainer_groups_.empty()) {
      Refuse("group", "", "", "job has no trainer group, want one");
    }
    if (trainer_groups_.size() > 1) {
      Refuse("group", "", "",
             absl::StrCat("job has ", trainer_groups_.size(), " trainer groups (",
                          absl::StrJoin(trainer_groups_, ", "), "), want one"));
    }
    if (rollout_groups_.empty()) {
      Refuse("group", "", "", "job has no rollout group, want at least one");
    }
  }

  void MergeTensors() {
    for (const Registration* registration : ordered_) {
      for (const Tensor& tensor : registration->tensors) Declare(tensor, registration->layout);
    }
    if (declared_.size() > kMaxTensors) {
      Refuse("limit", "", "",
             absl::StrCat("job has ", declared_.size(), " tensors, want at most ", kMaxTensors));
    }
  }

  void Declare(const Tensor& tensor, const Layout& layout) {
    const bool trains = layout.role == Role::kTrainer;
    Declared& known = declared_[absl::string_view(tensor.name)];
    if (known.tensor == nullptr) {
      known.tensor = &tensor;
      known.by = &layout.name;
    } else if (tensor.dtype != known.tensor->dtype || tensor.shape != known.tensor->shape) {
      Refuse(tensor.dtype != known.tensor->dtype ? "dtype" : "shape", tensor.name,
             layout.name.ToString(),
             absl::StrCat("tensor ", tensor.name, " is ", Describe(tensor), " for worker ",
                          layout.name.ToString(), " and ", Describe(*known.tensor), " for worker ",
                          known.by->ToString(), ", want the same"));
    }
    if (!trains) return;
    if (known.owned == nullptr) {
      known.owned = &tensor;
      known.owner = &layout.name;
    } else if (tensor.overlap_identical != known.owned->overlap_identical) {
      Refuse("overlap", tensor.name, layout.name.ToString(),
             absl::StrCat("tensor ", tensor.name, " has overlap IDENTICAL for only one of workers ",
                          layout.name.ToString(), " and ", known.owner->ToString(),
                          ", want the same promise of all its owners"));
    }
  }

  Job Assemble() {
    Job job;
    job.name = ordered_.front()->job;
    std::vector<Declared*> order;
    order.reserve(declared_.size());
    for (auto& [name, declared] : declared_) order.push_back(&declared);
    std::sort(order.begin(), order.end(), [](const Declared* a, const Declared* b) {
      return a->tensor->name < b->tensor->name;
    });
    job.tensors.reserve(order.size());
    for (Declared* declared : order) {
      declared->id = TensorId(static_cast<std::uint32_t>(job.tensors.size()));
      job.tensors.push_back(declared->owned != nullptr ? *declared->owned : *declared->tensor);
    }
    job.layouts.reserve(ordered_.size());
    for (const Registration* registration : ordered_)
      job.layouts.push_back(Renumber(*registration));
    return job;
  }

  // Both tables are ordered by name, so the pieces stay ordered.
  Layout Renumber(const Registration& registration) const {
    std::vector<TensorId> ids;
    ids.reserve(registration.tensors.size());
    for (const Tensor& tensor : registration.tensors) {
      ids.push_back(declared_.find(absl::string_view(tensor.name))->second.id);
    }
    Layout layout = registration.layout;
    for (Piece& piece : layout.pieces.Edit()) piece.tensor = ids[piece.tensor.value()];
    return layout;
  }

  std::vector<const Registration*> ordered_;  // by worker name
  std::vector<std::string> trainer_groups_;
  std::vector<std::string> rollout_groups_;
  absl::flat_hash_map<absl::string_view, Declared> declared_;
  Refusals refusals_;
};

}  // namespace

std::variant<Job, Refusals> MakeJob(std::span<const Registration> registrations) {
  return JobBuilder(registrations).Build();
}

}  // namespace wb
