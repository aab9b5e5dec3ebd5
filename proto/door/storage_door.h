#pragma once

#include <cstdint>
#include <vector>

#include "planner/model/layout.h"
#include "proto/door/piece_door.h"
#include "proto/door/reasons.h"

namespace wb {

/// Steps (boxes, contiguous runs, elements) that the check of one destination may take before it
/// is refused as too intricate. Only pieces that interleave in memory cost more than one.
inline constexpr std::uint64_t kMaxStorageSteps = 4'194'304;

/// The elements of a destination must not share storage: a byte is written by one element. Two
/// params may lie on each other only where both hold the same element of the same tensor there (a
/// tied head as a view of the embedding); within a param each element is covered once; a local
/// param is never written, not even through another param. Trainers' views may overlap freely.
///
/// `layout` is one worker's, accepted otherwise; `tensors` is what its pieces' ids index.
void CheckStorage(const Layout& layout,
                  const std::vector<Tensor>& tensors,
                  const WorkerLabel& worker,
                  Reasons& reasons);

}  // namespace wb
