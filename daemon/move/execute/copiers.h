#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "transport/copy/copier.h"
#include "transport/memory/device_memory.h"

namespace wb {

/// The copiers that an executor works with: the host's, and one for each device whose memory it may
/// be given. Loop-confined; they outlive it. Who copies what is chosen when an attempt is prepared.
class Copiers {
 public:
  explicit Copiers(Copier& host) : host_(&host) {}
  void Add(DeviceId device, Copier& copier) { devices_.emplace(device, &copier); }

  /// The one that reaches a memory (of the host, if of no device) and the host's. NOT_FOUND names a
  /// device that has none here.
  absl::StatusOr<Copier*> Of(std::optional<DeviceId> device) const;
  /// The one that reaches both. FAILED_PRECONDITION names two devices: no copier
  /// reaches two.
  absl::StatusOr<Copier*> Between(std::optional<DeviceId> one, std::optional<DeviceId> other) const;
  /// Appends what any of them has done.
  void TakeDone(std::vector<CopyJob>& done) const;

 private:
  Copier* host_;
  absl::flat_hash_map<DeviceId, Copier*> devices_;
};

}  // namespace wb
