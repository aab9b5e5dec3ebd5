#include "planner/model/registration.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/model/describe.h"

namespace wb {
namespace {

// Gaps in a group's ranks are told as ranges, at most this many.
constexpr std::size_t kMaxGapsTold = 8;

// Equal for twins. Tells apart what usually differs: where shards begin, and in which memory.
std::size_t TwinHash(const Registration& registration) {
  const Layout& layout = registration.layout;
  std::size_t hash = absl::HashOf(layout.role, registration.tensors.size(), layout.pieces.size());
  for (const Piece& piece : layout.pieces) {
    hash = absl::HashOf(hash, piece.tensor, piece.box.lo(), piece.offset_bytes);
  }
  return hash;
}

// Whether both hold the same of the same tensors at the same places: then they do in every job.
bool AreTwins(const Registration& a, const Registration& b) {
  return a.layout.role == b.layout.role && a.tensors == b.tensors &&
         a.layout.pieces == b.layout.pieces;
}

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
    FindTwins();
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

  // Ranks of engines that are alike, and data parallel ranks, are looked at once.
  void FindTwins() {
    absl::flat_hash_map<const Piece*, std::size_t> by_list;
    absl::flat_hash_map<std::size_t, std::vector<std::size_t>> by_hash;
    twin_.reserve(ordered_.size());
    for (std::size_t i = 0; i < ordered_.size(); ++i) {
      const Registration& own = *ordered_[i];
      const auto [listed, fresh] = by_list.try_emplace(own.layout.pieces.data(), i);
      twin_.push_back(!fresh && AreTwins(own, *ordered_[listed->second])
                          ? twin_[listed->second]
                          : FirstTwin(i, by_hash[TwinHash(own)]));
    }
  }

  std::size_t FirstTwin(std::size_t number, std::vector<std::size_t>& alike) const {
    for (const std::size_t other : alike) {
      if (AreTwins(*ordered_[other], *ordered_[number])) return other;
    }
    alike.push_back(number);
    return number;
  }

  // What a twin declares has been declared, unless that was refused: then each is told.
  void MergeTensors() {
    std::vector<bool> refused(ordered_.size(), false);
    for (std::size_t i = 0; i < ordered_.size(); ++i) {
      if (twin_[i] < i && !refused[twin_[i]]) continue;
      const std::size_t before = refusals_.size();
      for (const Tensor& tensor : ordered_[i]->tensors) Declare(tensor, ordered_[i]->layout);
      refused[i] = refusals_.size() > before;
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
    for (std::size_t i = 0; i < ordered_.size(); ++i) {
      Layout& layout = job.layouts.emplace_back(ordered_[i]->layout);
      layout.pieces = twin_[i] < i ? job.layouts[twin_[i]].pieces : Renumber(*ordered_[i]);
    }
    return job;
  }

  // Both tables are ordered by name, so the pieces stay ordered.
  std::vector<Piece> Renumber(const Registration& registration) const {
    std::vector<TensorId> ids;
    ids.reserve(registration.tensors.size());
    for (const Tensor& tensor : registration.tensors) {
      ids.push_back(declared_.find(absl::string_view(tensor.name))->second.id);
    }
    std::vector<Piece> pieces = registration.layout.pieces.items();
    for (Piece& piece : pieces) piece.tensor = ids[piece.tensor.value()];
    return pieces;
  }

  std::vector<const Registration*> ordered_;  // by worker name
  std::vector<std::size_t> twin_;             // of each: the first that is alike, maybe itself
  std::vector<std::string> trainer_groups_;
  std::vector<std::string> rollout_groups_;
  absl::flat_hash_map<absl::string_view, Declared> declared_;
  Refusals refusals_;
};

}  // namespace

std::variant<Job, Refusals> MakeJob(std::span<const Registration> registrations) {
  return JobBuilder(registrations).Build();
}

Registration RegistrationOf(const Job& job, const Layout& layout) {
  Registration registration{job.name, {}, layout};
  std::optional<TensorId> last;
  for (Piece& piece : registration.layout.pieces.Edit()) {  // ordered by tensor
    if (piece.tensor != last) registration.tensors.push_back(job.tensor(piece.tensor));
    last = piece.tensor;
    piece.tensor = TensorId(static_cast<std::uint32_t>(registration.tensors.size() - 1));
  }
  return registration;
}

}  // namespace wb
