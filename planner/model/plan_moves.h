#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

#include "planner/model/plan.h"

namespace wb {

/// Rows [lo, hi) of dimension 0 of a slice, on the way to one receiver.
struct SlicePart {
  const Slice* slice = nullptr;
  WorkerIndex src;
  WorkerIndex dst;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  bool relayed = false;  // by another receiver
  bool by_mate = false;  // by one of the same group and node, which no quota speaks of

  std::uint64_t bytes() const { return slice->row_bytes() * static_cast<std::uint64_t>(hi - lo); }
  [[nodiscard]] Box box() const;
};

/// The group's receivers in their turns.
[[nodiscard]] std::vector<const PlanReceiver*> ByTurn(const PlanGroup& group);

/// Calls `visit` with each part that goes to the group, receiver by receiver in their turns, for
/// each as its slices are ordered. Costs little more than a look at each.
void ForEachPart(const Plan& plan,
                 const PlanGroup& group,
                 absl::FunctionRef<void(const SlicePart&)> visit);

/// The moves to the group that `wanted` says yes to, ordered by (destination, tensor, lo); it is
/// asked by source and destination. Parts that one trainer sends out of one of its pieces into one
/// landing of a worker, and that touch, are one move.
[[nodiscard]] std::vector<Move> MovesOf(
    const Plan& plan,
    const PlanGroup& group,
    absl::FunctionRef<bool(WorkerIndex src, WorkerIndex dst)> wanted);
[[nodiscard]] std::vector<Move> MovesOf(const Plan& plan, const PlanGroup& group);

/// How many moves there are in all.
[[nodiscard]] std::size_t CountMoves(const Plan& plan);
/// The moves to all groups, ordered by (destination name, tensor name, lo). There may be millions.
[[nodiscard]] std::vector<Move> AllMoves(const Plan& plan);

}  // namespace wb
