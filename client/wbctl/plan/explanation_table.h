#pragma once

#include <iosfwd>

#include "client/wbctl/plan/explained_plan.h"

namespace wb {

/// The lines of the table that say why: bounds and what sets them, all NICs and the fullest,
/// replicas, runs in memory, time on the wire.
void WriteExplanation(const ExplainedPlan& explained, std::ostream& out);

}  // namespace wb
