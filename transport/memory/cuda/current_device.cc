#include "transport/memory/cuda/current_device.h"

#include "absl/strings/str_format.h"

#include "planner/base/status_macros.h"

namespace wb {

CurrentDevice::CurrentDevice(const PrimaryContext& context, const DeviceUuid& uuid)
    : api_(*context.api),
      device_(context.device),
      uuid_(uuid),
      pushed_(OfDevice(uuid, api_.PushCurrent(context.context))) {}

CurrentDevice::~CurrentDevice() {
  // It fails where the driver is at its end, as within exit(): then nothing is current any more.
  if (pushed_.ok()) api_.PopCurrent().IgnoreError();
}

absl::StatusOr<ExportedMemory> CurrentDevice::Export(cuda::Address address) const {
  WB_RETURN_IF_ERROR(CheckCudaIpc(uuid_));
  // The driver itself takes an address of any device here, and the handle would go by our UUID.
  const absl::StatusOr<int> ordinal = api_.GetOrdinal(address);
  WB_RETURN_IF_ERROR(OfDevice(uuid_, ordinal.status()));
  if (*ordinal != device_) {
    return OfDevice(uuid_, absl::InvalidArgumentError(absl::StrFormat(
                               "address %#x is memory of another device, in this process device %d",
                               address, *ordinal)));
  }
  const absl::StatusOr<CudaApi::Allocation> found = api_.FindAllocation(address);
  WB_RETURN_IF_ERROR(OfDevice(uuid_, found.status()));
  const absl::StatusOr<cuda::IpcMemHandle> handle = api_.GetIpcHandle(found->base);
  WB_RETURN_IF_ERROR(OfDevice(uuid_, handle.status()));
  return ExportedMemory{uuid_, *handle, found->base, found->bytes, address - found->base};
}

absl::Status CurrentDevice::Copy(cuda::Address to, cuda::Address from, std::uint64_t bytes) const {
  return OfDevice(uuid_, api_.Copy(to, from, bytes));
}

}  // namespace wb
