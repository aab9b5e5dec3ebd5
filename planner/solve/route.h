#pragma once

#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/pool_rows.h"

namespace wb {

/// Chooses who sends what, so that the most loaded NIC carries as little as possible: fills the
/// quotas of the plan's groups, except of those that `kept` (per group) says have theirs. The plan
/// has its bounds. `senders` are all trainers, in the order in which choices go.
///
/// A trainer on the destination's node goes first: it costs no NIC anything. Of every other pool
/// the optimum of the bound says what each member is to send in all. Each group gets its share of
/// that, so that also a group that comes alone draws on all replicas; ends of shares fall between
/// slices, and what one group leaves over or under the next makes up for. If the most loaded sender
/// then is above the bound, it gives away or exchanges slices, or splits one, while that helps.
///
/// Where the plan has `fan_out` and the bound with it is lower, groups pass on to each other what
/// would make trainers carry more than that, and with `node_sharing` what groups of the same nodes
/// get; see planner/solve/fan_out.h.
///
/// What kept quotas say is load that is there already.
void Route(const Job& job,
           const std::vector<WorkerIndex>& senders,
           const std::vector<bool>& kept,
           const PoolRows& rows,
           Plan& plan);

}  // namespace wb
