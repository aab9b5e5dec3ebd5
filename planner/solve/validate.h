#pragma once

#include <span>

#include "absl/status/status.h"

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Checks a plan against its job without any of the planner's own steps: every move lies inside a
/// piece of its source and of its destination, the moves tile each destination piece exactly once,
/// no destination element moves twice, ties name one storage, the order and the totals are right,
/// and no NIC figure is below the bound. FAILED_PRECONDITION names the first thing that is not so.
[[nodiscard]] absl::Status ValidatePlan(const Job& job, const Plan& plan);
/// The same of `moves`, which need not be the plan's.
[[nodiscard]] absl::Status ValidateMoves(const Job& job,
                                         const Plan& plan,
                                         std::span<const Move> moves);

}  // namespace wb
