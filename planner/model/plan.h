#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/model/box.h"
#include "planner/model/ids.h"

namespace wb {

/// One slice from one worker to another. The slice lies inside one box of the source and one box
/// of the destination; several destination pieces may hold it (tied tensors): it moves once and
/// lands in each.
struct Move {
  WorkerIndex src;
  WorkerIndex dst;
  TensorId tensor;
  Box box;
  std::uint64_t bytes = 0;
  friend bool operator==(const Move&, const Move&) = default;
};

/// `alias` lies in the same storage as `target` on every trainer that holds either: its bytes
/// travel as the target's and land in both.
struct Tie {
  TensorId alias;
  TensorId target;
  friend bool operator==(const Tie&, const Tie&) = default;
};

/// The least bytes the most loaded NIC must carry in one direction, whatever the plan; see
/// planner/solve/bound.h for the argument. Each worker has one NIC; moves inside a node are free.
struct Bounds {
  std::uint64_t direct = 0;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// What a plan means for one rollout group.
struct PlanGroup {
  std::string name;
  std::size_t begin = 0;  // its moves are Plan::moves[begin, end)
  std::size_t end = 0;
  std::vector<Tie> ties;  // of Plan::ties, those whose alias it wants
  /// Of its moves and ties and all they speak of: workers with their nodes, tensors. Groups of two
  /// plans with one fingerprint have the same part on every node.
  Fingerprint fingerprint;
  friend bool operator==(const PlanGroup&, const PlanGroup&) = default;
};

/// All moves of one update; pure and comparable.
///
/// Invariant: moves are ordered by (destination name, tensor name, box lo) and tile every
/// destination piece exactly once. `unused` lists tensors that no destination wants, ordered.
struct Plan {
  std::vector<Move> moves;
  std::uint64_t bytes = 0;              // of all moves
  std::uint64_t intra_node_bytes = 0;   // of moves whose workers share a node
  std::uint64_t max_egress_bytes = 0;   // most bytes out of one worker's NIC
  std::uint64_t max_ingress_bytes = 0;  // most bytes into one worker's NIC
  Bounds bounds;
  std::vector<Tie> ties;  // ordered by alias
  std::vector<TensorId> unused;
  std::vector<PlanGroup> groups;  // every rollout group, ordered by name
  Fingerprint fingerprint;        // of the groups' names and fingerprints
  friend bool operator==(const Plan&, const Plan&) = default;

  /// The bound for the features in force.
  std::uint64_t bound_bytes() const { return bounds.direct; }
  /// The most that one NIC carries in one direction.
  std::uint64_t max_nic_bytes() const { return std::max(max_egress_bytes, max_ingress_bytes); }
  /// nullptr when there is no such group.
  const PlanGroup* FindGroup(std::string_view name) const {
    const auto found = std::lower_bound(
        groups.begin(), groups.end(), name,
        [](const PlanGroup& group, std::string_view key) { return group.name < key; });
    return found == groups.end() || found->name != name ? nullptr : &*found;
  }
};

}  // namespace wb
