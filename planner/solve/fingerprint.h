#pragma once

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Fills the fingerprints of the plan and its groups: XXH3 over the canonical form of what the
/// moves follow from, in which every name stands for itself. So they do not depend on where things
/// stand in the job's tables, and a group's not on the other groups.
void FillFingerprints(const Job& job, Plan& plan);

}  // namespace wb
