#pragma once

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/pool_rows.h"

namespace wb {

/// What the quotas add up to: the groups' and the plan's bytes and its NIC figures, each worker
/// with one NIC.
void FillTotals(const Job& job, const PoolRows& rows, Plan& plan);

}  // namespace wb
