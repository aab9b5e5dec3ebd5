#pragma once

#include <iosfwd>

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Writes a plan as `wbctl plan` promises it: {"moves": [...], "summary": {...}}, one move a line,
/// in the plan's order. Moves are streamed group by group: a plan can have millions.
void WritePlanJson(const Job& job, const Plan& plan, std::ostream& out);

/// {"summary": {...}} alone.
void WritePlanSummaryJson(const Job& job, const Plan& plan, std::ostream& out);

}  // namespace wb
