#pragma once

#include <iosfwd>

#include "client/wbctl/output.h"
#include "client/wbctl/plan/planned_job.h"
#include "planner/explain/plan_diff.h"

namespace wb {

/// Writes what differs between the plans of two files: as a table, or as {"diff": {...}} (README
/// lists the keys; sizes are in bytes).
void WriteDiff(const PlannedJob& before,
               const PlannedJob& after,
               const PlanDiff& diff,
               OutputFormat format,
               std::ostream& out);

}  // namespace wb
