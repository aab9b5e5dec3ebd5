#pragma once

#include <cstdint>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/refusal.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/source_sets.h"

namespace wb {

/// At most this many conflicts of one tensor are told.
inline constexpr std::size_t kMaxConflictsTold = 16;

/// Elements of a tensor that the same trainers hold. Source boxes of a tensor are disjoint, and
/// each lies inside one piece of every holder.
struct SourceBox {
  TensorId tensor;
  Box box;
  SourceSetId holders;
  /// Only where declared boxes overlap (IDENTICAL): for each holder, in order, a number for its
  /// piece; equal numbers of one worker and tensor are one piece.
  std::vector<std::uint32_t> holder_pieces;
};

/// The source boxes of a tensor, ordered by lo, or why nobody can say who owns an element.
struct TensorSources {
  std::vector<SourceBox> boxes;
  Refusals refusals;
};

/// Equal boxes of several trainers are replicas. Boxes that overlap without being equal, or two
/// pieces of one trainer with a common element, are a conflict that names both, unless the tensor
/// says IDENTICAL: then the boxes are cut into atoms. Two pieces of one trainer with the same box
/// at the same storage are one (an alias that the trainer declares as a param of its own).
[[nodiscard]] TensorSources FindSources(const Job& job,
                                        const PieceTable& pieces,
                                        TensorId tensor,
                                        SourceSets& sets);

}  // namespace wb
