#include "planner/solve/planner.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/solve/demands.h"
#include "planner/solve/fingerprint.h"
#include "planner/solve/index.h"
#include "planner/solve/kept.h"
#include "planner/solve/layout_classes.h"
#include "planner/solve/node_sharing.h"
#include "planner/solve/ordered_job.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/plan_bounds.h"
#include "planner/solve/pool_rows.h"
#include "planner/solve/route.h"
#include "planner/solve/ties.h"
#include "planner/solve/totals.h"

namespace wb {
namespace {

// At most 1.02 x the bound.
bool NearBound(const Plan& plan) {
  return plan.max_nic_bytes() - std::min(plan.max_nic_bytes(), plan.bound_bytes()) <=
         plan.bound_bytes() / 50;
}

// Whether what kept groups' quotas say of each pool is the row that they get from it: their rows
// are made anew, and with node sharing not from their quotas.
bool FillRows(const PoolRows& rows, const std::vector<bool>& kept, const Plan& plan) {
  for (std::uint32_t g = 0; g < kept.size(); ++g) {
    if (!kept[g]) continue;
    std::vector<std::uint64_t> said(plan.pools.size());
    std::vector<std::uint64_t> filled(plan.pools.size());
    for (const Quota& quota : plan.groups[g].quotas) said[quota.pool] += quota.bytes;
    rows.AddBytesOf(g, filled);
    if (said != filled) return false;
  }
  return true;
}

// False, and nothing routed, where kept quotas do not fit.
bool RouteGroups(const Job& job,
                 const std::vector<WorkerIndex>& senders,
                 const std::vector<bool>& kept,
                 Plan& plan) {
  if (plan.node_sharing) ShareWithinNodes(job, plan);
  const PoolRows rows(plan);
  if (!FillRows(rows, kept, plan)) return false;
  Route(job, senders, kept, rows, plan);
  FillTotals(job, rows, plan);
  return true;
}

void RouteAll(const Job& job, const std::vector<WorkerIndex>& senders, Plan& plan) {
  RouteGroups(job, senders, std::vector<bool>(plan.groups.size(), false), plan);
}

// Routes what is not kept of the plan before, and all of it anew where what is kept does not fit,
// or where that is far from the bound and helps.
void KeepOrRoute(const Job& job,
                 const std::vector<WorkerIndex>& senders,
                 const PreviousPlan& previous,
                 Plan& plan) {
  std::vector<PlanGroup> groups = plan.groups;
  const std::vector<bool> kept = Keep(job, previous, plan);
  if (!RouteGroups(job, senders, kept, plan)) {
    plan.groups = std::move(groups);
    return RouteAll(job, senders, plan);
  }
  if (std::find(kept.begin(), kept.end(), true) == kept.end() || NearBound(plan)) return;
  const std::uint64_t most = plan.max_nic_bytes();
  std::swap(plan.groups, groups);
  RouteAll(job, senders, plan);
  if (plan.max_nic_bytes() < most) return;
  std::swap(plan.groups, groups);
  FillTotals(job, PoolRows(plan), plan);
}

}  // namespace

std::variant<Plan, Refusals> Solve(const Job& job,
                                   std::optional<PreviousPlan> previous,
                                   Routing routing) {
  const OrderedJob ordered(job);
  const Job& work = ordered.job();
  const LayoutClasses classes(work);
  const PieceTable pieces(work, classes);
  TieTable ties = FindTies(work, pieces);
  IndexResult indexed = BuildIndex(work, classes, pieces, ties);
  if (!indexed.refusals.empty()) return std::move(indexed.refusals);

  Plan plan;
  plan.fan_out = routing.fan_out;
  plan.node_sharing = routing.node_sharing;
  plan.groups = FindGroups(work, classes, pieces, ties);
  plan.unused = UnusedTensors(work, pieces, ties);
  plan.ties = std::move(ties.ties);
  const std::vector<WorkerIndex> senders =
      FillDemands(work, classes, std::move(indexed.index), plan);
  FillBounds(work, senders.size(), plan);
  if (previous.has_value()) {
    KeepOrRoute(work, senders, *previous, plan);
  } else {
    RouteAll(work, senders, plan);
  }
  FillFingerprints(work, plan);
  ordered.Restore(plan);
  return plan;
}

}  // namespace wb
