#include "planner/solve/landings.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/model/box_tree.h"
#include "planner/solve/cut.h"

namespace wb {
namespace {

bool AnyOverlap(std::span<const Box> boxes) {
  const BoxTree tree(boxes);
  for (std::size_t box = 0; box < boxes.size(); ++box) {
    bool found = false;
    tree.Visit(boxes[box], [&](std::size_t other) {
      found = other != box;
      return !found;
    });
    if (found) return true;
  }
  return false;
}

// One worker's distinct boxes, in place: overlapping ones are cut. False when that is too much.
bool MakeDisjoint(std::vector<Box>& boxes) {
  if (boxes.size() < 2 || !AnyOverlap(boxes)) return true;
  std::optional<std::vector<Atom>> atoms = CutIntoAtoms(boxes, UsualWork(boxes.size()));
  if (!atoms.has_value()) return false;
  boxes.clear();
  for (Atom& atom : *atoms) boxes.push_back(std::move(atom.box));
  return true;
}

}  // namespace

TensorLandings FindLandings(const Job& job,
                            const PieceTable& pieces,
                            TensorId tensor,
                            std::span<const TensorId> aliases) {
  std::vector<PieceRef> refs(pieces.destinations(tensor).begin(),
                             pieces.destinations(tensor).end());
  for (const TensorId alias : aliases) {
    const std::span<const PieceRef> more = pieces.destinations(alias);
    refs.insert(refs.end(), more.begin(), more.end());
  }
  std::stable_sort(refs.begin(), refs.end(),
                   [](PieceRef a, PieceRef b) { return a.worker < b.worker; });

  TensorLandings result;
  result.landings.reserve(refs.size());
  std::vector<Box> boxes;  // of one worker
  for (std::size_t begin = 0; begin < refs.size();) {
    const WorkerIndex dst = refs[begin].worker;
    boxes.clear();
    for (; begin < refs.size() && refs[begin].worker == dst; ++begin) {
      boxes.push_back(pieces.piece(refs[begin]).box);
    }
    std::sort(boxes.begin(), boxes.end());
    boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
    if (!MakeDisjoint(boxes)) {
      const std::string worker = job.layout(dst).name.ToString();
      result.refusals.push_back(
          {"limit", job.tensor(tensor).name, worker,
           absl::StrCat("tensor ", job.tensor(tensor).name, ": the ", boxes.size(),
                        " overlapping boxes of ", worker, " cut each other into too many parts")});
      continue;
    }
    std::uint32_t number = 0;
    for (Box& box : boxes) result.landings.push_back({std::move(box), dst, number++});
  }
  std::sort(result.landings.begin(), result.landings.end(), [](const Landing& a, const Landing& b) {
    return a.box != b.box ? a.box < b.box : a.dst < b.dst;
  });
  return result;
}

}  // namespace wb
