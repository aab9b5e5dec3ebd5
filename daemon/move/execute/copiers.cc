#include "daemon/move/execute/copiers.h"

#include "absl/strings/str_cat.h"

namespace wb {

absl::StatusOr<Copier*> Copiers::Of(std::optional<DeviceId> device) const {
  if (!device.has_value()) return host_;
  const auto found = devices_.find(*device);
  if (found != devices_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("memory of device ", device->value(), ", which has no copier here"));
}

absl::StatusOr<Copier*> Copiers::Between(std::optional<DeviceId> one,
                                         std::optional<DeviceId> other) const {
  if (one.has_value() && other.has_value() && *one != *other) {
    return absl::FailedPreconditionError(absl::StrCat("a copy from device ", one->value(),
                                                      " to device ", other->value(),
                                                      ", which no copier reaches both"));
  }
  return Of(one.has_value() ? one : other);
}

void Copiers::TakeDone(std::vector<CopyJob>& done) const {
  host_->TakeDone(done);
  for (const auto& [device, copier] : devices_) copier->TakeDone(done);
}

}  // namespace wb
