#include "client/wbctl/contents/checkpoint_contents.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/model/describe.h"

namespace wb {
namespace {

/// What is left of `box` without `hole`, as boxes that do not overlap.
void Subtract(Box box, const Box& hole, std::vector<Box>& left) {
  const std::optional<Box> both = Intersect(box, hole);
  if (!both) {
    left.push_back(std::move(box));
    return;
  }
  for (int d = 0; d < box.ndim(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (both->lo()[at] > box.lo()[at]) {
      auto [below, rest] = Split(box, d, both->lo()[at]);
      left.push_back(std::move(below));
      box = std::move(rest);
    }
    if (both->hi()[at] < box.hi()[at]) {
      auto [rest, above] = Split(box, d, both->hi()[at]);
      left.push_back(std::move(above));
      box = std::move(rest);
    }
  }
}

using BoxesByTensor = std::map<std::string, std::vector<const Box*>>;

/// The boxes of each rollout group, by group.
std::map<std::string, BoxesByTensor> RolloutBoxes(const Job& job) {
  std::map<std::string, BoxesByTensor> groups;
  for (const Layout& layout : job.layouts) {
    if (layout.role != Role::kRollout) continue;
    BoxesByTensor& boxes = groups[layout.name.group];
    for (const Piece& piece : layout.pieces) {
      boxes[job.tensor(piece.tensor).name].push_back(&piece.box);
    }
  }
  return groups;
}

}  // namespace

void CheckpointContents::Write(const Tensor& tensor,
                               std::uint64_t begin,
                               std::uint64_t /*count*/,
                               std::span<std::byte> out) const {
  const Checkpoint::Entry* entry = checkpoint_.Find(tensor.name);
  const auto element = static_cast<std::uint64_t>(DtypeBytes(tensor.dtype));
  const std::span<const std::byte> from =
      checkpoint_.elements(*entry).subspan(begin * element, out.size());
  std::copy(from.begin(), from.end(), out.begin());
}

bool CoverWhole(const Index& shape, const std::vector<const Box*>& boxes) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  const absl::StatusOr<Box> whole = Box::Create(Index(shape.size(), 0), shape);
  if (!whole.ok()) return false;
  std::set<Box> distinct;  // replicas once
  for (const Box* box : boxes) distinct.insert(*box);
  std::vector<Box> missing{*whole};
  for (const Box& box : distinct) {
    std::vector<Box> left;
    for (Box& part : missing) Subtract(std::move(part), box, left);
    missing = std::move(left);
  }
  return missing.empty();
}

Refusals CheckpointMismatches(const Job& job, const Checkpoint& checkpoint) {
  Refusals refusals;
  for (const Tensor& tensor : job.tensors) {
    const Checkpoint::Entry* entry = checkpoint.Find(tensor.name);
    if (entry == nullptr) {
      refusals.push_back({"checkpoint", tensor.name, "",
                          absl::StrCat("tensor ", tensor.name, " is not in the checkpoint")});
      continue;
    }
    if (entry->tensor.dtype == tensor.dtype && entry->tensor.shape == tensor.shape) continue;
    refusals.push_back(
        {"checkpoint", tensor.name, "",
         absl::StrCat("tensor ", tensor.name, " is ", Describe(tensor), " in the layout file and ",
                      Describe(entry->tensor), " in the checkpoint")});
  }
  return refusals;
}

Refusals ExportObstacles(const Job& job, const Checkpoint& checkpoint) {
  Refusals refusals;
  const std::map<std::string, BoxesByTensor> groups = RolloutBoxes(job);
  for (const Checkpoint::Entry& entry : checkpoint.entries()) {
    const std::string& name = entry.tensor.name;
    for (const auto& [group, boxes] : groups) {
      const auto held = boxes.find(name);
      const std::vector<const Box*> none;
      if (CoverWhole(entry.tensor.shape, held == boxes.end() ? none : held->second)) continue;
      refusals.push_back(
          {"checkpoint", name, "",
           absl::StrCat("tensor ", name, " of the checkpoint cannot be exported: ", "group ", group,
                        " holds ", held == boxes.end() ? "nothing" : "only a part", " of it")});
    }
  }
  return refusals;
}

}  // namespace wb
