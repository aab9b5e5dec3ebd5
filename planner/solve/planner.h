#pragma once

#include <optional>
#include <variant>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/refusal.h"

namespace wb {

/// A plan made before and its job, which has its tables in order (as MakeJob makes it).
struct PreviousPlan {
  const Job& job;
  const Plan& plan;
};

/// What a plan may do.
struct Routing {
  bool fan_out = false;       // rollouts may pass on to other nodes what they have received
  bool node_sharing = false;  // rollouts may pass it on within their node
};

/// Computes the transfer plan of a job, or every reason why there is none. Pure: no I/O, no
/// clock, no lock; the same input gives the same plan, and permuting its workers permutes it.
///
/// Steps: index the pieces, check coverage and ownership, route every slice
/// to the source that keeps the most loaded NIC lowest, compute the bound.
///
/// Moves of `previous` to rollout groups that are in both jobs, unchanged, stay as they are, move
/// by move, as long as the trainers are the same too: only the other groups are routed, on top of
/// the load that the kept moves make. Unless the fullest NIC would then carry more than 1.02 x the
/// bound: then all are routed anew, if that is lower.
[[nodiscard]] std::variant<Plan, Refusals> Solve(const Job& job,
                                                 std::optional<PreviousPlan> previous,
                                                 Routing routing = {});
[[nodiscard]] inline std::variant<Plan, Refusals> Solve(const Job& job) {
  return Solve(job, std::nullopt);
}

}  // namespace wb
