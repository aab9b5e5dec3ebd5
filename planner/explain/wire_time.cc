#include "planner/explain/wire_time.h"

#include <cstdint>

namespace wb {

WireTime PredictWireTime(const Plan& plan, std::span<const NicLoad> loads, const Rates& rates) {
  std::uint64_t local = 0;
  for (const NicLoad& load : loads) local = std::max({local, load.local_out, load.local_in});
  const auto seconds = [](std::uint64_t bytes, double gb_per_s) {
    return static_cast<double>(bytes) / (gb_per_s * 1e9);
  };
  return {seconds(plan.max_nic_bytes(), rates.rail_gb_per_s), seconds(local, rates.nvlink_gb_per_s),
          seconds(plan.bound_bytes(), rates.rail_gb_per_s)};
}

}  // namespace wb
