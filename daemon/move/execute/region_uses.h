#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "transport/memory/region.h"

namespace wb {

/// Which regions attempts use, and which shall go once none does.
/// Invariant: a region leaves the table only when its count is zero. Loop-confined.
class RegionUses {
 public:
  explicit RegionUses(RegionTable& table) : table_(table) {}

  /// Counts one more user of each. FAILED_PRECONDITION names a region that is being removed; then
  /// nothing is counted. The caller has looked the regions up in the table.
  absl::Status Acquire(const std::vector<RegionId>& regions);
  /// Removes the regions that wait for it and have no user left.
  void Release(const std::vector<RegionId>& regions);
  /// Removes the region now or when its last user releases it; then calls `removed`.
  void Remove(RegionId region, std::function<void()> removed);

 private:
  struct Use {
    std::uint64_t count = 0;
    bool removing = false;  // no new users
    std::function<void()> removed;
  };
  void RemoveNow(RegionId region, const std::function<void()>& removed);

  RegionTable& table_;
  absl::flat_hash_map<RegionId, Use> uses_;
};

}  // namespace wb
