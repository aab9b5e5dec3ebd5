#pragma once

#include <iosfwd>

#include "client/wbctl/plan/explained_plan.h"

namespace wb {

/// Writes a plan for people: what moves, what the fullest NICs carry against the bound, why,
/// sources that nobody wants and, unless `summary`, the pairs of workers that exchange most.
void WritePlanTable(const ExplainedPlan& explained, bool summary, std::ostream& out);

}  // namespace wb
