#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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
  // See planner/solve/plan_bounds.h.
  std::uint64_t fan_out = 0;       // if rollouts may pass on to other nodes what they have received
  std::uint64_t node_sharing = 0;  // if they may pass it on within their node
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// Elements that rollout workers of one layout want and that lie in one source box. Slices of one
/// `landing` of a tensor lie inside the same pieces of the worker.
struct Slice {
  TensorId tensor;
  std::uint32_t source = 0;   // the source box; numbers are unique in a plan
  std::uint32_t landing = 0;  // unique within the tensor
  Box box;
  std::uint64_t bytes = 0;
  std::uint64_t row_bytes() const { return bytes / static_cast<std::uint64_t>(box.extent(0)); }
  std::uint64_t element_bytes() const { return bytes / static_cast<std::uint64_t>(box.elements()); }
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// A source box of which not all holders have the same piece around it, as those of overlapping
/// boxes (IDENTICAL): what is sent out of one piece into one landing becomes one move.
struct SplitSource {
  std::uint32_t source = 0;
  std::vector<WorkerIndex> holders;   // ascending
  std::vector<std::uint32_t> pieces;  // of each; equal numbers of a worker and tensor are one piece
  friend bool operator==(const SplitSource&, const SplitSource&) = default;
};

/// Trainers of which each may send some slices: all that hold them, or, where that is not empty,
/// those of them on the destination's node (`local`: no NIC carries anything). Or, with `mate`, no
/// trainer: the receiver of the same group with that turn, which is on the destination's node and
/// gets the same slice.
struct Pool {
  std::vector<WorkerIndex> members;  // ascending
  bool local = false;
  std::optional<std::uint32_t> mate;  // then local, without members, and there are no quotas
  friend bool operator==(const Pool&, const Pool&) = default;
};

/// What rollout workers want that are alike: of one layout, and with the same trainers on their
/// nodes, if any.
struct Demand {
  std::uint32_t begin = 0;           // Plan::slices[begin, end)
  std::uint32_t end = 0;             //
  std::vector<std::uint32_t> pools;  // of each of these slices, index into Plan::pools
  friend bool operator==(const Demand&, const Demand&) = default;
};

/// A rollout worker and its place among those of its group.
struct PlanReceiver {
  WorkerIndex worker;
  std::uint32_t demand = 0;  // index into Plan::demands
  std::uint32_t turn = 0;    // 0..n-1, each once
  friend bool operator==(const PlanReceiver&, const PlanReceiver&) = default;
};

/// Bytes of a pool's slices to one group that one member sends; or, where `relay` (index into
/// Plan::groups) is set, that each receiver gets from the one of that group with its turn, which
/// has them by the same plan: `src` then says nothing.
struct Quota {
  std::uint32_t pool = 0;
  WorkerIndex src;
  std::uint64_t bytes = 0;
  std::optional<std::uint32_t> relay;
  friend bool operator==(const Quota&, const Quota&) = default;
};

/// What a plan means for one rollout group.
///
/// Put the slices that its receivers get from one pool in a row: by the receivers' turns, then as
/// slices are ordered. The pool's quotas, in their order, say who sends how much of that row; an
/// end of a quota inside a slice lies between two of its rows (indices of dimension 0). So the
/// moves follow from far fewer numbers than there are moves; planner/model/plan_moves.h lists them.
struct PlanGroup {
  std::string name;
  std::vector<PlanReceiver> receivers;  // ordered by rank
  std::vector<Quota> quotas;            // ordered by pool
  std::uint64_t bytes = 0;              // of its moves
  std::vector<Tie> ties;                // of Plan::ties, those whose alias it wants
  /// Of its moves and ties and all they speak of: workers with their nodes, tensors. Groups of two
  /// plans with one fingerprint have the same part on every node.
  Fingerprint fingerprint;
  friend bool operator==(const PlanGroup&, const PlanGroup&) = default;
};

/// All moves of one update; pure and comparable.
///
/// Invariant: the moves tile every destination piece exactly once. `unused` lists tensors that no
/// destination wants, ordered.
struct Plan {
  std::vector<Slice> slices;               // by demand, tensor, lo
  std::vector<SplitSource> split_sources;  // by source
  std::vector<Pool> pools;                 //
  std::vector<Demand> demands;             //
  std::vector<PlanGroup> groups;           // every rollout group, ordered by name
  std::uint64_t bytes = 0;                 // of all moves
  std::uint64_t intra_node_bytes = 0;      // of moves whose workers share a node
  std::uint64_t max_egress_bytes = 0;      // most bytes out of one worker's NIC
  std::uint64_t max_ingress_bytes = 0;     // most bytes into one worker's NIC
  bool fan_out = false;       // rollouts may pass on to other nodes what they have received
  bool node_sharing = false;  // rollouts may pass it on within their node
  Bounds bounds;
  std::vector<Tie> ties;  // ordered by alias
  std::vector<TensorId> unused;
  Fingerprint fingerprint;  // of the groups' names and fingerprints
  friend bool operator==(const Plan&, const Plan&) = default;

  /// The bound for the features in force.
  std::uint64_t bound_bytes() const {
    if (node_sharing) return bounds.node_sharing;
    return fan_out ? bounds.fan_out : bounds.direct;
  }
  /// The most that one NIC carries in one direction.
  std::uint64_t max_nic_bytes() const { return std::max(max_egress_bytes, max_ingress_bytes); }
  /// nullptr when the source box is not split.
  const SplitSource* FindSplit(std::uint32_t source) const {
    const auto found = std::lower_bound(
        split_sources.begin(), split_sources.end(), source,
        [](const SplitSource& entry, std::uint32_t key) { return entry.source < key; });
    return found == split_sources.end() || found->source != source ? nullptr : &*found;
  }
  /// nullptr when there is no such group.
  const PlanGroup* FindGroup(std::string_view name) const {
    const auto found = std::lower_bound(
        groups.begin(), groups.end(), name,
        [](const PlanGroup& group, std::string_view key) { return group.name < key; });
    return found == groups.end() || found->name != name ? nullptr : &*found;
  }
};

}  // namespace wb
