#include "transport/memory/cuda/device_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wb {

absl::StatusOr<PrimaryContext> CudaDevice::Context() {
  const MutexLock lock(mu_);
  if (!context_) {
    const absl::StatusOr<cuda::Context> context = api_.RetainPrimaryContext(device_);
    WB_RETURN_IF_ERROR(OfDevice(uuid_, context.status()));
    context_.Reset({&api_, device_, *context});
  }
  return context_.get();
}

absl::StatusOr<std::unique_ptr<DeviceTable>> DeviceTable::Open(const CudaApi& api) {
  std::unique_ptr<DeviceTable> table(new DeviceTable(api));
  WB_ASSIGN_OR_RETURN(const int count, api.DeviceCount());
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    WB_ASSIGN_OR_RETURN(const cuda::Device device, api.GetDevice(ordinal));
    WB_ASSIGN_OR_RETURN(const DeviceUuid uuid, api.GetUuid(device));
    WB_ASSIGN_OR_RETURN(std::string name, api.GetName(device));
    table->devices_.emplace_back(table->api_, device, uuid, std::move(name));
  }
  return table;
}

absl::StatusOr<CudaDevice*> DeviceTable::Find(const DeviceUuid& uuid) {
  for (CudaDevice& device : devices_) {
    if (device.uuid() == uuid) return &device;
  }
  const std::string all =
      absl::StrJoin(devices_, ", ", [](std::string* out, const CudaDevice& device) {
        absl::StrAppend(out, device.uuid().ToString());
      });
  return absl::NotFoundError(
      absl::StrCat("device ", uuid.ToString(), " is not visible here, these are: ", all));
}

}  // namespace wb
