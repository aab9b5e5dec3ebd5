#pragma once

#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/statusor.h"

#include "planner/base/mutex.h"
#include "planner/base/status_macros.h"
#include "transport/memory/cuda/cuda_api.h"
#include "transport/memory/cuda/current_device.h"
#include "transport/memory/cuda/device_uuid.h"
#include "transport/memory/cuda/primary_context.h"

namespace wb {

/// A device that this process sees. Its primary context is retained when it is first made current,
/// once, until the device is destroyed. Thread-safe.
class CudaDevice {
 public:
  /// `api` outlives it.
  CudaDevice(const CudaApi& api, cuda::Device device, DeviceUuid uuid, std::string name)
      : api_(api), device_(device), uuid_(uuid), name_(std::move(name)) {}
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() = default;

  const DeviceUuid& uuid() const { return uuid_; }
  const std::string& name() const { return name_; }

  /// Runs `work(current)` here and now, with the device current on this thread. What it returns, a
  /// Status or StatusOr, or why the device could not become current.
  template <typename Work>
  std::invoke_result_t<Work, const CurrentDevice&> WhileCurrent(Work work) {
    WB_ASSIGN_OR_RETURN(const PrimaryContext context, Context());
    const CurrentDevice current(context, uuid_);
    WB_RETURN_IF_ERROR(current.pushed());
    return work(current);
  }

 private:
  absl::StatusOr<PrimaryContext> Context();

  const CudaApi& api_;
  const cuda::Device device_;
  const DeviceUuid uuid_;
  const std::string name_;
  Mutex mu_;
  PrimaryContextHandle context_ ABSL_GUARDED_BY(mu_);
};

/// The devices that this process sees, found by UUID and by nothing else. Thread-safe.
class DeviceTable {
 public:
  static absl::StatusOr<std::unique_ptr<DeviceTable>> Open(const CudaApi& api);
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;
  ~DeviceTable() = default;

  /// NOT_FOUND names those that there are. The device lives as long as the table.
  absl::StatusOr<CudaDevice*> Find(const DeviceUuid& uuid);
  /// To look at, in the order of this process's ordinals.
  const std::deque<CudaDevice>& devices() const { return devices_; }

 private:
  explicit DeviceTable(const CudaApi& api) : api_(api) {}

  const CudaApi api_;
  std::deque<CudaDevice> devices_;  // use api_
};

}  // namespace wb
