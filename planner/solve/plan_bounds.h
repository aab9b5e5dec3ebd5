#pragma once

#include <cstddef>

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

// The least bytes that the most loaded NIC must carry in one direction, whatever the plan, where
// rollouts may do more than receive. The terms of each bound hold for every plan that may do no
// more than that; that they can be reached together is not claimed. "Afar": of which no holder
// among the trainers shares the node.
//
// direct: trainers send, rollouts receive; exact; see planner/solve/bound.h.
//
// fan_out: rollouts may pass on to other nodes what they have received.
//   - What one destination wants from afar enters its NIC, as without forwarding.
//   - An element that only trainers of a set U hold, and that some destination wants from afar,
//     leaves the NIC of one of them at least once: U has |U| NICs, so the most loaded carries such
//     elements' bytes / |U|; the best U is found as in bound.h.
//   - Every byte that enters a NIC has left another one: of N NICs that may send, trainers' and
//     rollouts', the most loaded carries all that enters / N.
//
// node_sharing: rollouts of a node may also pass on within it, which costs no NIC; between nodes
// they pass on only if the plan has fan_out.
//   - An element that some workers of a node want from afar enters the NIC of one of them at least
//     once. Seen from the receiving end this is the question of bound.h again: each element may be
//     sent to any of those who want it, and the answer is the same minimum.
//   - With fan_out: the second term above, and the third, of the bytes that enter nodes.
//     Without: an element leaves the NIC of one of its holders once for each node that wants it.

/// Fills the bounds of a plan, of which slices, pools, demands and receivers are all that counts;
/// none of its pools is a mate's. `trainers`: how many there are.
void FillBounds(const Job& job, std::size_t trainers, Plan& plan);

}  // namespace wb
