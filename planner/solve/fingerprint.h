#pragma once

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// XXH3 over the plan's canonical form: each move's workers, tensor (name, dtype) and box, then the
/// ties, all by name. So it does not depend on where things stand in the job's tables.
[[nodiscard]] Fingerprint FingerprintOf(const Job& job, const Plan& plan);

}  // namespace wb
