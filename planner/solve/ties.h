#pragma once

#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/piece_table.h"

namespace wb {

/// Tensors that are one in the trainers' memory: of equal dtype and shape, and on every trainer
/// that holds either, the same boxes at the same storage (buffer, offset, strides). Their bytes
/// travel once, under the first name that a rollout wants.
struct TieTable {
  std::vector<Tie> ties;          // among tensors that rollouts want; ordered by alias
  std::vector<TensorId> targets;  // per tensor: itself, or the tensor its bytes travel as

  TensorId target(TensorId tensor) const { return targets[tensor.value()]; }
};

[[nodiscard]] TieTable FindTies(const Job& job, const PieceTable& pieces);

/// Whether both pieces name the same bytes for every element. Their boxes must be equal.
[[nodiscard]] bool SameStorage(const Piece& a, const Piece& b);
/// Whether both tensors' pieces are equal in box and storage, trainer by trainer.
[[nodiscard]] bool SameSources(const PieceTable& pieces, TensorId a, TensorId b);

}  // namespace wb
