#pragma once

#include <cstdint>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/index.h"
#include "planner/solve/layout_classes.h"

namespace wb {

/// Fills what is to be planned before anyone is chosen to send it: the plan's slices, split
/// sources, pools, demands, and the receivers of its groups with their turns. Pools come with
/// fewest members first, then most bytes.
///
/// Returns the trainers in an order in which choices may go. It, the receivers' turns and the order
/// of pools hang on what workers hold and want, not on their names: exchanging the ranks of two
/// workers exchanges their parts in the plan and nothing else.
[[nodiscard]] std::vector<WorkerIndex> FillDemands(const Job& job,
                                                   const LayoutClasses& classes,
                                                   SliceIndex index,
                                                   Plan& plan);

}  // namespace wb
