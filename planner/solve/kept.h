#pragma once

#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/planner.h"
#include "planner/solve/ties.h"

namespace wb {

/// The rollout groups of `job`, ordered by name, with the ties that each wants; their moves and
/// fingerprints are not filled. `job` has its tables in order.
[[nodiscard]] std::vector<PlanGroup> FindGroups(const Job& job,
                                                const PieceTable& pieces,
                                                const TieTable& ties);

/// The moves of a plan made before that stay as they are: those of whole rollout groups.
struct KeptMoves {
  std::vector<bool> destinations;  // per worker of the job: its moves are kept
  std::vector<Move> moves;         // in ids of the job, ordered as a plan's
};

/// The moves to groups that are in both jobs with the same layouts and ties, if the trainers are
/// too: moves depend on nothing else, so they are moves of `job` as well. `groups` are the job's.
[[nodiscard]] KeptMoves FindKept(const Job& job,
                                 const std::vector<PlanGroup>& groups,
                                 const PreviousPlan& previous);

}  // namespace wb
