#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/index.h"
#include "planner/solve/route.h"

namespace wb {

/// The routed parts as moves, ordered by (dst, tensor, lo). Parts that one trainer sends out of one
/// of its pieces into one landing of a worker, and that touch, become one move.
[[nodiscard]] std::vector<Move> MakeMoves(const Job& job,
                                          const SliceIndex& index,
                                          std::span<const RoutedPart> parts);

/// What the moves add up to: the plan's bytes and the NIC figures, each worker with one NIC.
void FillTotals(const Job& job, Plan& plan);

}  // namespace wb
