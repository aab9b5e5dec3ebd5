#include "planner/solve/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/solve/cut.h"

namespace wb {
namespace {

// Params with elements that are not declared local: what a worker expects to be written.
std::size_t WantedParams(const Layout& layout) {
  const auto has_elements = [](const Param& param) {
    return !param.local && std::all_of(param.shape.begin(), param.shape.end(),
                                       [](std::int64_t extent) { return extent > 0; });
  };
  return static_cast<std::size_t>(
      std::count_if(layout.params.begin(), layout.params.end(), has_elements));
}

}  // namespace

std::vector<Box> CoverageCheck::DeclaredBoxes(TensorId tensor) const {
  std::vector<Box> boxes;
  for (const PieceRef ref : pieces_.sources(tensor)) boxes.push_back(pieces_.piece(ref).box);
  std::sort(boxes.begin(), boxes.end());
  boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
  return boxes;
}

void CoverageCheck::NoteUncovered(TensorId tensor, const Landing& landing) {
  // The first hole is told with its box; of the others only the worker.
  if (!holes_.empty()) {
    holes_.push_back({landing.dst, landing.box});
    return;
  }
  const std::vector<Box> boxes = DeclaredBoxes(tensor);
  holes_.push_back(
      {landing.dst,
       FirstUncovered(landing.box, boxes, UsualWork(boxes.size())).value_or(landing.box)});
}

void CoverageCheck::CheckAsDeclared(TensorId tensor, const std::vector<Landing>& landings) {
  const std::vector<Box> boxes = DeclaredBoxes(tensor);
  for (std::size_t i = 0; i < landings.size(); ++i) {
    NoteServed(landings[i].dst);
    if (i > 0 && landings[i].box == landings[i - 1].box) continue;
    std::optional<Box> hole = FirstUncovered(landings[i].box, boxes, UsualWork(boxes.size()));
    if (hole.has_value()) holes_.push_back({landings[i].dst, *std::move(hole)});
  }
}

void CoverageCheck::FinishTensor(TensorId tensor) {
  if (holes_.empty()) return;
  const Hole first = holes_.front();
  std::vector<WorkerIndex> workers;
  for (const Hole& hole : holes_) {
    const std::span<const WorkerIndex> alike = classes_.members(hole.dst);
    workers.insert(workers.end(), alike.begin(), alike.end());
  }
  holes_.clear();
  std::sort(workers.begin(), workers.end());
  workers.erase(std::unique(workers.begin(), workers.end()), workers.end());

  const std::string& name = job_.tensor(tensor).name;
  const std::string worker = job_.layout(first.dst).name.ToString();
  std::string text =
      pieces_.sources(tensor).empty()
          ? absl::StrCat("tensor ", name, " is held by no trainer, wanted by ", worker)
          : absl::StrCat("tensor ", name, ": box ", first.box.ToString(),
                         " is held by no trainer, wanted by ", worker);
  if (workers.size() > 1) absl::StrAppend(&text, " and ", workers.size() - 1, " more workers");
  refusals_.push_back({"uncovered", name, worker, std::move(text)});
}

void CoverageCheck::Finish(const std::vector<TensorId>& unused) {
  const bool uncovered = !refusals_.empty();
  for (std::uint32_t w = 0; w < job_.layouts.size(); ++w) {
    const Layout& layout = job_.layouts[w];
    if (layout.role != Role::kRollout || served_[classes_.first(WorkerIndex(w)).value()]) continue;
    const std::size_t wanted = WantedParams(layout);
    if (wanted == 0) continue;
    const std::string name = layout.name.ToString();
    refusals_.push_back({"empty", "", name,
                         absl::StrCat("0 bytes planned for ", name, ", which has ", wanted,
                                      " params with elements; a param that is never written says "
                                      "local")});
  }
  if (!uncovered) return;
  for (const TensorId id : unused) {
    const Tensor& tensor = job_.tensor(id);
    const std::string worker = job_.layout(pieces_.sources(id).front().worker).name.ToString();
    refusals_.push_back({"unused", tensor.name, worker,
                         absl::StrCat("tensor ", tensor.name, " is held by ", worker,
                                      " and wanted by no rollout")});
  }
}

}  // namespace wb
