#pragma once

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Has what several receivers of a group want on one node come to one of them, and from there to
/// the others: gives such receivers demands of their own, in which slices that a mate gets come
/// from a mate's pool (Pool::mate), and adds those. A slice is shared with receivers that want the
/// same box of the same source and would get it through a NIC; each is fetched by the one of them
/// that fetches least so far. Receivers on nodes that are alike have their demands in common still.
///
/// Groups are not looked at together here: of alike groups of the same nodes the first fetches all
/// (planner/solve/fan_out.h), so that with several engines on a node its NICs are not used evenly,
/// and the fullest carries up to so many times the bound as there are engines.
void ShareWithinNodes(const Job& job, Plan& plan);

}  // namespace wb
