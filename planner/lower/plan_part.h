#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/plan_part.h"
#include "planner/model/registration.h"

namespace wb {

/// Hands the parts of `plan` for the rollout group `group`, one of the plan's, to `take`, each with
/// the index of its node in `nodes` (each once), in that order; a node that no move concerns has
/// one without moves. Walks the group once, however many nodes there are; what it holds at a time
/// are the group's moves (some 100 bytes each), two pointers to each, and one part.
void MakePlanParts(const Job& job,
                   const Plan& plan,
                   const std::string& group,
                   std::span<const std::string> nodes,
                   absl::FunctionRef<void(std::size_t node, PlanPart part)> take);
/// That of one node.
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
