#pragma once

#include <cstddef>
#include <span>

#include "planner/base/strong_id.h"

namespace wb {

/// Names a device of this node. Chosen by whoever opens memory of it.
using DeviceId = StrongId<struct DeviceTag>;

/// Memory of a device, open in this process: neither the CPU nor the fabric reaches it, only the
/// device's Copier (transport/copy/copier.h). One implementation for each kind of device; closes
/// it when destroyed, on any thread.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  virtual DeviceId device() const = 0;
  /// Where it lies for the device's copier; the same as long as it is open.
  virtual std::span<std::byte> addresses() const = 0;
};

}  // namespace wb
