#include "planner/solve/piece_table.h"

#include <cstddef>

namespace wb {

PieceTable::PieceTable(const Job& job)
    : job_(&job),
      sources_(MakeSide(job, Role::kTrainer)),
      destinations_(MakeSide(job, Role::kRollout)) {}

PieceTable::Side PieceTable::MakeSide(const Job& job, Role role) {
  Side side;
  side.begin.assign(job.tensors.size() + 1, 0);
  for (const Layout& layout : job.layouts) {
    if (layout.role != role) continue;
    for (const Piece& piece : layout.pieces) ++side.begin[piece.tensor.value() + 1];
  }
  for (std::size_t t = 1; t < side.begin.size(); ++t) side.begin[t] += side.begin[t - 1];
  side.refs.resize(side.begin.back());
  std::vector<std::size_t> next(side.begin.begin(), side.begin.end() - 1);
  for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
    const Layout& layout = job.layouts[w];
    if (layout.role != role) continue;
    for (std::uint32_t p = 0; p < layout.pieces.size(); ++p) {
      side.refs[next[layout.pieces[p].tensor.value()]++] = {WorkerIndex(w), p};
    }
  }
  return side;
}

}  // namespace wb
