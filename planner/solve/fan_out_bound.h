#pragma once

#include <cstdint>

#include "planner/model/plan.h"
#include "planner/solve/pool_rows.h"

namespace wb {

// The bound if rollouts may pass on what they have received: the least bytes that the most loaded
// NIC must carry in one direction, whatever the plan. Three terms, of which each holds for every
// plan:
//   - what one destination wants enters its NIC, as without forwarding;
//   - an element that only trainers of a set U hold, and that some destination wants of which no
//     holder shares the node, leaves the NIC of one of them at least once: U has |U| NICs, so the
//     most loaded carries such elements' bytes / |U|; the best U is found as in bound.h;
//   - every byte that enters a NIC has left another one: of N NICs that may send, trainers' and
//     rollouts', the most loaded carries all that enters / N.
// That they can be reached together is not claimed. The plan's slices, pools, demands and receivers
// are all that counts.
[[nodiscard]] std::uint64_t FanOutBound(const Plan& plan,
                                        const PoolRows& rows,
                                        std::size_t trainers);

}  // namespace wb
