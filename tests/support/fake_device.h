#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/base/mutex.h"
#include "transport/copy/copier.h"
#include "transport/memory/device_memory.h"
#include "transport/memory/region.h"

namespace wb::test {

/// A device without hardware, at the seam of a GPU (Region, Copier): the addresses of its regions
/// fault when the CPU touches them; its copiers alone know what lies behind.
///
/// It outlives its regions and copiers. Thread-safe.
class FakeDevice {
 public:
  explicit FakeDevice(DeviceId id = DeviceId(0)) : id_(id) {}
  ~FakeDevice() = default;
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  DeviceId id() const { return id_; }
  /// Zeroed memory of the device, as the test may look at it.
  std::span<std::byte> Allocate(std::uint64_t bytes);
  /// A region of allocated memory, as the system gets to know it.
  Region Open(std::span<std::byte> memory, RegionAccess access = RegionAccess::kReadWrite);
  /// A copier with a thread of its own.
  std::unique_ptr<Copier> MakeCopier();
  /// Copiers begin a job only when `delay` has passed since its submission, so that who takes
  /// queued for done finds the bytes of before. None at first; for jobs submitted from now on.
  void SetDelay(std::chrono::milliseconds delay);

 private:
  class Memory;
  class StreamCopier;

  /// Device addresses as what lies behind them; other memory as it is.
  template <typename Byte>
  std::span<Byte> Behind(std::span<Byte> memory);
  std::chrono::milliseconds delay();

  struct Opened {
    const std::byte* addresses = nullptr;
    std::span<std::byte> memory;
  };

  const DeviceId id_;
  Mutex mu_;
  std::vector<std::unique_ptr<std::byte[]>> allocations_ ABSL_GUARDED_BY(mu_);
  std::vector<Opened> opened_ ABSL_GUARDED_BY(mu_);
  std::chrono::milliseconds delay_ ABSL_GUARDED_BY(mu_){};
};

}  // namespace wb::test
