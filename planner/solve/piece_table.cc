#include "planner/solve/piece_table.h"

#include <cstddef>

namespace wb {

PieceTable::PieceTable(const Job& job, const LayoutClasses& classes)
    : job_(&job),
      sources_(MakeSide(job, classes, Role::kTrainer)),
      destinations_(MakeSide(job, classes, Role::kRollout)) {}

PieceTable::Side PieceTable::MakeSide(const Job& job, const LayoutClasses& classes, Role role) {
  std::vector<WorkerIndex> workers;
  for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
    if (job.layouts[w].role == role && classes.is_first(WorkerIndex(w))) workers.emplace_back(w);
  }
  Side side;
  side.begin.assign(job.tensors.size() + 1, 0);
  for (const WorkerIndex worker : workers) {
    for (const Piece& piece : job.layout(worker).pieces) ++side.begin[piece.tensor.value() + 1];
  }
  for (std::size_t t = 1; t < side.begin.size(); ++t) side.begin[t] += side.begin[t - 1];
  side.refs.resize(side.begin.back());
  std::vector<std::size_t> next(side.begin.begin(), side.begin.end() - 1);
  for (const WorkerIndex worker : workers) {
    const SharedList<Piece>& pieces = job.layout(worker).pieces;
    for (std::uint32_t p = 0; p < pieces.size(); ++p) {
      side.refs[next[pieces[p].tensor.value()]++] = {worker, p};
    }
  }
  return side;
}

}  // namespace wb
