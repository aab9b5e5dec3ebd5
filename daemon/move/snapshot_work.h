#pragma once

#include <vector>

#include "planner/base/strong_id.h"
#include "transport/memory/region.h"

namespace wb {

/// Names the taking of a snapshot. Chosen by the coordinator; never reused.
using SnapshotId = StrongId<struct SnapshotTag>;

/// Bytes of a worker, and the region of the daemon's own that they go to, from its start on.
struct SnapshotPart {
  MemoryRef from;
  RegionId to;
};

/// A worker's memory that is to be copied, so that the worker may go on.
struct SnapshotWork {
  SnapshotId id;
  std::vector<SnapshotPart> parts;
};

}  // namespace wb
