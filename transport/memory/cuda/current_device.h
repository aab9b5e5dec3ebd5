#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "transport/memory/cuda/cuda_api.h"
#include "transport/memory/cuda/device_uuid.h"
#include "transport/memory/cuda/primary_context.h"

namespace wb {

/// An allocation of a device as another process is told of it (legacy CUDA IPC), and where in it
/// the exported address lies.
struct ExportedMemory {
  DeviceUuid device;
  cuda::IpcMemHandle handle{};  // of the whole allocation
  cuda::Address base = 0;       // of the allocation, in the exporting process
  std::uint64_t bytes = 0;      // of the allocation
  std::uint64_t offset = 0;     // of the address in it
};

/// A device that is current on the calling thread: the only way to work on its memory. What was
/// current before is so again at its end.
///
/// Invariant: it lives on the stack of CudaDevice::WhileCurrent, hence on one thread and within any
/// other that it began in. Not to be handed to another thread.
class CurrentDevice {
 public:
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

  /// The allocation of this device that `address` lies in. INVALID_ARGUMENT when it is another
  /// device's, FAILED_PRECONDITION where CheckCudaIpc says so.
  absl::StatusOr<ExportedMemory> Export(cuda::Address address) const;
  /// Between addresses of this device and of the host. Returns when the bytes are there, and waits
  /// for what others have queued on the device: not for the path of an update.
  absl::Status Copy(cuda::Address to, cuda::Address from, std::uint64_t bytes) const;

 private:
  friend class CudaDevice;
  CurrentDevice(const PrimaryContext& context, const DeviceUuid& uuid);
  /// Not OK: the device did not become current, and nobody gets to see this.
  const absl::Status& pushed() const { return pushed_; }

  const CudaApi& api_;
  const cuda::Device device_;
  const DeviceUuid& uuid_;
  const absl::Status pushed_;
};

}  // namespace wb
