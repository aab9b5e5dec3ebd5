#pragma once

#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/layout_classes.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/planner.h"
#include "planner/solve/ties.h"

namespace wb {

/// The rollout groups of `job`, ordered by name, with the ties that each wants; nothing else of
/// them is filled. `job` has its tables in order.
[[nodiscard]] std::vector<PlanGroup> FindGroups(const Job& job,
                                                const LayoutClasses& classes,
                                                const PieceTable& pieces,
                                                const TieTable& ties);

/// Takes over what a plan made before says of groups that are in both jobs with the same layouts
/// and ties, if the trainers are the same too: moves depend on nothing else. Fills those groups'
/// quotas and the turns of their receivers; returns, per group of `plan`, whether it was one. The
/// groups of `plan` have their receivers.
[[nodiscard]] std::vector<bool> Keep(const Job& job, const PreviousPlan& previous, Plan& plan);

}  // namespace wb
