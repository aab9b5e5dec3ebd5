#pragma once

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"

#include "planner/model/box.h"
#include "proto/door/step_budget.h"

namespace wb {

/// Calls `found` once for each pair of boxes with a common element, until it returns false. All
/// boxes have the same ndim. Returns false when the budget ended first.
///
/// Boxes are split into sets that a plane separates, again and again, so that the boxes of a
/// tiling cost n log n; only what no plane separates is compared pair by pair.
[[nodiscard]] bool FindOverlaps(std::span<const Box> boxes,
                                StepBudget& budget,
                                absl::FunctionRef<bool(std::size_t, std::size_t)> found);

}  // namespace wb
