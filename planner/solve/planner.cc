#include "planner/solve/planner.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/solve/fingerprint.h"
#include "planner/solve/index.h"
#include "planner/solve/kept.h"
#include "planner/solve/moves.h"
#include "planner/solve/ordered_job.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/route.h"
#include "planner/solve/ties.h"

namespace wb {
namespace {

// Moves of whole destinations, from either side.
std::vector<Move> Merge(std::vector<Move> kept, std::vector<Move> routed) {
  if (kept.empty()) return routed;
  std::vector<Move> moves;
  moves.reserve(kept.size() + routed.size());
  std::merge(std::make_move_iterator(kept.begin()), std::make_move_iterator(kept.end()),
             std::make_move_iterator(routed.begin()), std::make_move_iterator(routed.end()),
             std::back_inserter(moves), [](const Move& a, const Move& b) { return a.dst < b.dst; });
  return moves;
}

Plan RoutePlan(const Job& job, const SliceIndex& index, KeptMoves kept) {
  const Routing routing = Route(job, index, kept);
  Plan plan;
  plan.moves = Merge(std::move(kept.moves), MakeMoves(job, index, routing.parts));
  plan.bounds = routing.bounds;
  FillTotals(job, plan);
  return plan;
}

// At most 1.02 x the bound.
bool NearBound(const Plan& plan) {
  return plan.max_nic_bytes() - std::min(plan.max_nic_bytes(), plan.bound_bytes()) <=
         plan.bound_bytes() / 50;
}

Plan KeepOrRoute(const Job& job, const SliceIndex& index, KeptMoves kept) {
  const bool keeps = !kept.moves.empty();
  Plan plan = RoutePlan(job, index, std::move(kept));
  if (!keeps || NearBound(plan)) return plan;
  Plan anew = RoutePlan(job, index, {});
  return anew.max_nic_bytes() < plan.max_nic_bytes() ? anew : plan;
}

// The moves of a group stand together: they are ordered by destination.
void FillRanges(const Job& job, Plan& plan) {
  std::size_t at = 0;
  for (PlanGroup& group : plan.groups) {
    group.begin = at;
    while (at < plan.moves.size() && job.layout(plan.moves[at].dst).name.group == group.name) ++at;
    group.end = at;
  }
}

}  // namespace

std::variant<Plan, Refusals> Solve(const Job& job, std::optional<PreviousPlan> previous) {
  const OrderedJob ordered(job);
  const Job& work = ordered.job();
  const PieceTable pieces(work);
  TieTable ties = FindTies(work, pieces);
  IndexResult indexed = BuildIndex(work, pieces, ties);
  if (!indexed.refusals.empty()) return std::move(indexed.refusals);

  std::vector<PlanGroup> groups = FindGroups(work, pieces, ties);
  KeptMoves kept;
  if (previous.has_value()) kept = FindKept(work, groups, *previous);
  Plan plan = KeepOrRoute(work, indexed.index, std::move(kept));
  plan.unused = UnusedTensors(work, pieces, ties);
  plan.ties = std::move(ties.ties);
  plan.groups = std::move(groups);
  FillRanges(work, plan);
  FillFingerprints(work, plan);
  ordered.Restore(plan);
  return plan;
}

}  // namespace wb
