#pragma once

#include <algorithm>
#include <span>

#include "planner/explain/nic_loads.h"
#include "planner/model/plan.h"

namespace wb {

/// Rates of one GPU in one direction; GB = 1e9 bytes. Both are more than 0.
struct Rates {
  double rail_gb_per_s = 0;
  double nvlink_gb_per_s = 0;
};

/// How long the bytes are under way when every link runs at its rate all the time; in seconds.
/// Nothing else is in it: no start, no packing of strided bytes, no way through a host's memory.
struct WireTime {
  double rail = 0;    // what the fullest NIC carries one way / rail_gb_per_s
  double nvlink = 0;  // what one GPU exchanges most inside its node, one way / nvlink_gb_per_s
  double bound = 0;   // Plan::bound_bytes / rail_gb_per_s
  /// Both go on at once.
  double seconds() const { return std::max(rail, nvlink); }
};

/// `loads` are the plan's.
[[nodiscard]] WireTime PredictWireTime(const Plan& plan,
                                       std::span<const NicLoad> loads,
                                       const Rates& rates);

}  // namespace wb
