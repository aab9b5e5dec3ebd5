#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "planner/base/mutex.h"
#include "tests/support/fake_cuda/fake_cuda_driver.h"
#include "transport/memory/cuda/device_uuid.h"

namespace wb::cuda {

/// A device's primary context.
struct ContextState {
  Device device = 0;
  int retained = 0;
};

}  // namespace wb::cuda

namespace wb::test {

/// A device that there is not. A slice (MIG) has a GPU that it is of; a GPU is its own.
struct FakeGpu {
  DeviceUuid uuid;
  DeviceUuid whole;
};

/// Memory of a device: addresses that the CPU faults on, and what lies behind them.
struct FakeAllocation {
  cuda::Device device = 0;
  cuda::Address base = 0;
  std::vector<std::byte> memory;
};

/// The driver in one process, on a node of devices that there are not. Thread-safe.
///
/// A thread has no current context at first, as the driver has it; CUDA's runtime would take device
/// 0. Stricter than the driver, which takes addresses of another device where all are unified: what
/// works on a device's memory wants that device's context, else it fails and is a misuse.
class FakeDriver {
 public:
  /// Reads the environment the first time. CUDA_ERROR_NO_DEVICE when no device is visible.
  cuda::Result Init();
  int device_count();
  std::optional<FakeGpu> FindGpu(cuda::Device device);

  /// Contexts live as long as the driver. nullptr: there is no such device.
  cuda::Context FindContext(cuda::Device device);
  cuda::Result Retain(cuda::Context context);
  cuda::Result Release(cuda::Context context);
  bool IsRetained(cuda::Context context);

  /// nullptr: it is no device's. Needs no context.
  const FakeAllocation* FindAllocation(cuda::Address address);

  // With the calling thread's current context.
  cuda::Result Allocate(std::size_t bytes, cuda::Address& address);
  /// The one that `address` lies in.
  cuda::Result Use(cuda::Address address, const FakeAllocation*& allocation);
  /// Each address is of the current device or of the host.
  cuda::Result Copy(cuda::Address to, cuda::Address from, std::size_t bytes);
  int misuses();

  /// Of the calling thread; the last is current.
  static std::vector<cuda::Context>& Contexts();

 private:
  bool IsCurrent(cuda::Device device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  FakeAllocation* Holder(cuda::Address address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  cuda::Result Resolve(cuda::Address address, std::size_t bytes, std::byte*& memory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  bool initialised_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<FakeGpu> gpus_ ABSL_GUARDED_BY(mu_);  // that are visible, by ordinal
  std::deque<cuda::ContextState> contexts_ ABSL_GUARDED_BY(mu_);
  std::deque<FakeAllocation> allocations_ ABSL_GUARDED_BY(mu_);
  int misuses_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace wb::test
