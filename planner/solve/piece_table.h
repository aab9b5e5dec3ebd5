#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/model/layout.h"
#include "planner/solve/layout_classes.h"

namespace wb {

/// A piece of a job: `worker`'s layout, and the index among its pieces.
struct PieceRef {
  WorkerIndex worker;
  std::uint32_t piece = 0;
  friend bool operator==(const PieceRef&, const PieceRef&) = default;
};

/// The pieces of a job by tensor, trainers' and rollouts' apart, each ordered by worker and as the
/// layout orders them; of workers that are alike, only the first's. Immutable; the job outlives it.
class PieceTable {
 public:
  PieceTable(const Job& job, const LayoutClasses& classes);

  std::span<const PieceRef> sources(TensorId tensor) const { return sources_.of(tensor); }
  std::span<const PieceRef> destinations(TensorId tensor) const { return destinations_.of(tensor); }
  const Piece& piece(PieceRef ref) const { return job_->layout(ref.worker).pieces[ref.piece]; }

 private:
  // refs[begin[t], begin[t + 1]) are tensor t's.
  struct Side {
    std::vector<std::size_t> begin;
    std::vector<PieceRef> refs;
    std::span<const PieceRef> of(TensorId tensor) const {
      return std::span(refs).subspan(begin[tensor.value()],
                                     begin[tensor.value() + 1] - begin[tensor.value()]);
    }
  };
  static Side MakeSide(const Job& job, const LayoutClasses& classes, Role role);

  const Job* job_;
  Side sources_;
  Side destinations_;
};

}  // namespace wb
