#pragma once

#include <optional>

#include "planner/explain/explanation.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// A plan with all that is to be printed of it; for the time of one call.
struct ExplainedPlan {
  const Job& job;
  const Plan& plan;
  const Explanation& explanation;
  const std::optional<Rates>& rates;  // that its wire time was predicted with
};

}  // namespace wb
