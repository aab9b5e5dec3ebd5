#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/plan_part.h"
#include "planner/model/registration.h"

namespace wb {

/// The part of `plan` for `node` and the rollout group `group`, one of the plan's.
[[nodiscard]] PlanPart MakePlanPart(const Job& job,
                                    const Plan& plan,
                                    const std::string& group,
                                    const std::string& node);

/// The registered layout with its pieces' tensor ids translated to those of the part, by name and
/// by the part's ties; pieces of tensors the part does not name are dropped. FAILED_PRECONDITION
/// when dtype or shape of a tensor differ from the part's.
[[nodiscard]] absl::StatusOr<Layout> BindLayout(const Registration& registration,
                                                const PlanPart& part);

}  // namespace wb
