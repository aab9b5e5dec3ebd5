#pragma once

#include <iosfwd>

#include "client/wbctl/plan/explained_plan.h"

namespace wb {

/// Writes a plan as `wbctl plan` promises it: {"moves": [...], "summary": {...}}, one move a line,
/// in the plan's order. Moves are streamed group by group: a plan can have millions.
void WritePlanJson(const ExplainedPlan& explained, std::ostream& out);

/// {"summary": {...}} alone.
void WritePlanSummaryJson(const ExplainedPlan& explained, std::ostream& out);

}  // namespace wb
