#pragma once

#include <variant>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/refusal.h"

namespace wb {

/// Computes the transfer plan of a job, or every reason why there is none. Pure: no I/O, no
/// clock, no lock; the same job gives the same plan, and permuting its workers permutes it.
///
/// Steps: index the pieces, check coverage and ownership, route every slice
/// to the source that keeps the most loaded NIC lowest, compute the bound.
[[nodiscard]] std::variant<Plan, Refusals> Solve(const Job& job);

}  // namespace wb
