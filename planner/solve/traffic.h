#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/model/layout.h"
#include "planner/solve/index.h"

namespace wb {

/// Slices that cross between nodes and that the same trainers hold.
struct TrafficClass {
  std::vector<std::uint32_t> holders;  // sender numbers, ascending
  std::vector<std::uint32_t> slices;   // indices, most bytes first
  std::uint64_t bytes = 0;
};

/// What the NICs have to carry, before anyone is chosen to send it.
///
/// Workers are numbered by what they hold and want, not by name, wherever a choice hangs on the
/// number: exchanging the ranks of two workers exchanges their parts in the plan and nothing else.
struct Traffic {
  std::vector<WorkerIndex> senders;   // sender number -> trainer
  std::vector<TrafficClass> classes;  // fewest holders first, then most bytes first
  std::vector<std::uint32_t> local;   // slices with a holder on the destination's node
  std::uint64_t max_ingress_bytes = 0;
};

/// Which trainers hold a slice on the node of its destination.
class NodeMap {
 public:
  NodeMap(const Job& job, const SourceSets& sets);
  /// Members of the set on the node of `dst`, ascending; empty if there are none.
  std::span<const WorkerIndex> HoldersNear(SourceSetId set, WorkerIndex dst) const;

 private:
  std::vector<std::uint32_t> node_;                // per worker
  std::vector<std::vector<WorkerIndex>> by_node_;  // per set: its members, ordered by node
};

[[nodiscard]] Traffic FindTraffic(const Job& job, const SliceIndex& index, const NodeMap& nodes);

}  // namespace wb
