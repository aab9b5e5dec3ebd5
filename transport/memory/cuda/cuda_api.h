#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "transport/memory/cuda/device_uuid.h"
#include "transport/memory/cuda/driver.h"

namespace wb {

/// The CUDA driver, loaded at run time and initialised: one program runs with and without a GPU.
/// A call of ours is one of the driver's; an error names the call and the driver's own name for it.
/// Thread-safe value.
///
/// What works on memory is CurrentDevice's alone to call: the driver takes the device from the
/// calling thread, where any may be current.
class CudaApi {
 public:
  static constexpr char kLibrary[] = "libcuda.so.1";

  /// UNAVAILABLE says why there is no CUDA here: no such library, a function that it lacks (a
  /// driver before CUDA 11.4), or what the driver says itself, as that no device is visible. The
  /// library stays loaded: its threads cannot be ended.
  static absl::StatusOr<CudaApi> Load(const std::string& library = kLibrary);

  absl::StatusOr<int> DeviceCount() const;
  absl::StatusOr<cuda::Device> GetDevice(int ordinal) const;
  absl::StatusOr<DeviceUuid> GetUuid(cuda::Device device) const;
  absl::StatusOr<std::string> GetName(cuda::Device device) const;
  absl::StatusOr<cuda::Context> RetainPrimaryContext(cuda::Device device) const;
  absl::Status ReleasePrimaryContext(cuda::Device device) const;

 private:
  friend class CurrentDevice;
  struct Allocation {
    cuda::Address base = 0;
    std::uint64_t bytes = 0;
  };

  CudaApi() = default;
  absl::Status PushCurrent(cuda::Context context) const;
  absl::Status PopCurrent() const;
  /// Of the device whose memory it is.
  absl::StatusOr<int> GetOrdinal(cuda::Address address) const;
  absl::StatusOr<Allocation> FindAllocation(cuda::Address address) const;
  absl::StatusOr<cuda::IpcMemHandle> GetIpcHandle(cuda::Address base) const;
  absl::Status Copy(cuda::Address to, cuda::Address from, std::uint64_t bytes) const;
  absl::Status ToStatus(const char* call, cuda::Result result) const;

  decltype(&cuda::cuInit) init_ = nullptr;
  decltype(&cuda::cuGetErrorName) get_error_name_ = nullptr;
  decltype(&cuda::cuDeviceGetCount) device_get_count_ = nullptr;
  decltype(&cuda::cuDeviceGet) device_get_ = nullptr;
  decltype(&cuda::cuDeviceGetName) device_get_name_ = nullptr;
  decltype(&cuda::cuDeviceGetUuid) device_get_uuid_ = nullptr;
  decltype(&cuda::cuDeviceGetUuid_v2) device_get_uuid_v2_ = nullptr;
  decltype(&cuda::cuDevicePrimaryCtxRetain) primary_ctx_retain_ = nullptr;
  decltype(&cuda::cuDevicePrimaryCtxRelease_v2) primary_ctx_release_ = nullptr;
  decltype(&cuda::cuCtxPushCurrent_v2) ctx_push_current_ = nullptr;
  decltype(&cuda::cuCtxPopCurrent_v2) ctx_pop_current_ = nullptr;
  decltype(&cuda::cuPointerGetAttribute) pointer_get_attribute_ = nullptr;
  decltype(&cuda::cuMemGetAddressRange_v2) mem_get_address_range_ = nullptr;
  decltype(&cuda::cuIpcGetMemHandle) ipc_get_mem_handle_ = nullptr;
  decltype(&cuda::cuMemcpy) memcpy_ = nullptr;
};

}  // namespace wb
