#pragma once

#include <cstdint>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/solve/index.h"
#include "planner/solve/kept.h"

namespace wb {

/// Rows [lo, hi) of a slice's dimension 0, and the trainer that sends them.
struct RoutedPart {
  std::uint32_t slice = 0;  // index into SliceIndex::slices
  WorkerIndex src;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
};

struct Routing {
  std::vector<RoutedPart> parts;
  Bounds bounds;
};

/// Chooses who sends what, so that the most loaded NIC carries as little as possible.
///
/// A trainer on the destination's node goes first: it costs no NIC anything. The other slices are
/// placed class by class (one class: the same holders), fewest holders and largest slices first,
/// each at the holder that is least loaded counting what the optimal flow of the bound still has
/// in store for it. Then the most loaded sender gives away or exchanges slices, or splits one,
/// while that helps and it is above the bound.
///
/// Slices of destinations whose moves are kept are not routed: the kept moves are load that is
/// there already. The bounds are of the whole job all the same.
[[nodiscard]] Routing Route(const Job& job, const SliceIndex& index, const KeptMoves& kept);

}  // namespace wb
