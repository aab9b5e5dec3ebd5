#include "planner/solve/planner.h"

#include <utility>

#include "planner/solve/fingerprint.h"
#include "planner/solve/index.h"
#include "planner/solve/moves.h"
#include "planner/solve/ordered_job.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/route.h"
#include "planner/solve/ties.h"

namespace wb {

std::variant<Plan, Refusals> Solve(const Job& job) {
  const OrderedJob ordered(job);
  const Job& work = ordered.job();
  const PieceTable pieces(work);
  TieTable ties = FindTies(work, pieces);
  IndexResult indexed = BuildIndex(work, pieces, ties);
  if (!indexed.refusals.empty()) return std::move(indexed.refusals);

  const Routing routing = Route(work, indexed.index);
  Plan plan;
  plan.moves = MakeMoves(work, indexed.index, routing.parts);
  plan.bounds = routing.bounds;
  plan.unused = UnusedTensors(work, pieces, ties);
  plan.ties = std::move(ties.ties);
  FillTotals(work, plan);
  plan.fingerprint = FingerprintOf(work, plan);
  ordered.Restore(plan);
  return plan;
}

}  // namespace wb
