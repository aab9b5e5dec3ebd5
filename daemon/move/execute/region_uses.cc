#include "daemon/move/execute/region_uses.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace wb {

absl::Status RegionUses::Acquire(const std::vector<RegionId>& regions) {
  for (const RegionId region : regions) {
    const auto use = uses_.find(region);
    if (use != uses_.end() && use->second.removing) {
      return absl::FailedPreconditionError(
          absl::StrCat("region ", region.value(), " is being removed"));
    }
  }
  for (const RegionId region : regions) ++uses_[region].count;
  return absl::OkStatus();
}

void RegionUses::Release(const std::vector<RegionId>& regions) {
  for (const RegionId region : regions) {
    const auto use = uses_.find(region);
    if (use == uses_.end() || --use->second.count > 0) continue;
    const Use last = std::move(use->second);
    uses_.erase(use);
    if (last.removing) RemoveNow(region, last.removed);
  }
}

void RegionUses::Remove(RegionId region, std::function<void()> removed) {
  const auto use = uses_.find(region);
  if (use == uses_.end()) {
    RemoveNow(region, removed);
    return;
  }
  if (use->second.removing) {
    spdlog::error("region={} is being removed already", region.value());
    return;
  }
  use->second.removing = true;
  use->second.removed = std::move(removed);
}

void RegionUses::RemoveNow(RegionId region, const std::function<void()>& removed) {
  if (const absl::Status status = table_.Remove(region); !status.ok()) {
    spdlog::error("region={} cannot be removed: {}", region.value(), status.ToString());
  }
  if (removed != nullptr) removed();
}

}  // namespace wb
