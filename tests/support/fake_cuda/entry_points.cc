#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "tests/support/fake_cuda/fake_driver.h"

// libcuda.so.1 for tests: the driver's functions by their names, over one FakeDriver a process.

namespace wb::cuda {
namespace {

test::FakeDriver& Driver() {
  static test::FakeDriver driver;
  return driver;
}

Result GiveUuid(const DeviceUuid& uuid, Uuid& to) {
  std::ranges::copy(uuid.bytes(), to.bytes);
  return kSuccess;
}

}  // namespace

Result cuInit(unsigned int /*flags*/) {
  return Driver().Init();
}

Result cuGetErrorName(Result error, const char** name) {
  switch (error) {
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kNoDevice:
      *name = "CUDA_ERROR_NO_DEVICE";
      break;
    case kInvalidDevice:
      *name = "CUDA_ERROR_INVALID_DEVICE";
      break;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    default:
      return kInvalidValue;
  }
  return kSuccess;
}

Result cuDeviceGetCount(int* count) {
  *count = Driver().device_count();
  return kSuccess;
}

Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return Driver().FindGpu(ordinal).has_value() ? kSuccess : kInvalidDevice;
}

Result cuDeviceGetName(char* name, int room, Device device) {
  const std::optional<test::FakeGpu> gpu = Driver().FindGpu(device);
  if (!gpu.has_value()) return kInvalidDevice;
  std::snprintf(name, static_cast<std::size_t>(room), "%s",
                gpu->uuid == gpu->whole ? "Fake GPU" : "Fake GPU MIG 1g.10gb");
  return kSuccess;
}

Result cuDeviceGetUuid(Uuid* uuid, Device device) {
  const std::optional<test::FakeGpu> gpu = Driver().FindGpu(device);
  return gpu.has_value() ? GiveUuid(gpu->whole, *uuid) : kInvalidDevice;
}

Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  const std::optional<test::FakeGpu> gpu = Driver().FindGpu(device);
  return gpu.has_value() ? GiveUuid(gpu->uuid, *uuid) : kInvalidDevice;
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  *context = Driver().FindContext(device);
  return *context == nullptr ? kInvalidDevice : Driver().Retain(*context);
}

Result cuDevicePrimaryCtxRelease_v2(Device device) {
  const Context context = Driver().FindContext(device);
  return context == nullptr ? kInvalidDevice : Driver().Release(context);
}

Result cuDevicePrimaryCtxGetState(Device device, unsigned int* flags, int* active) {
  const Context context = Driver().FindContext(device);
  if (context == nullptr) return kInvalidDevice;
  *flags = 0;
  *active = Driver().IsRetained(context) ? 1 : 0;
  return kSuccess;
}

Result cuCtxPushCurrent_v2(Context context) {
  if (!Driver().IsRetained(context)) return kInvalidContext;
  test::FakeDriver::Contexts().push_back(context);
  return kSuccess;
}

Result cuCtxPopCurrent_v2(Context* context) {
  auto& contexts = test::FakeDriver::Contexts();
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

Result cuCtxGetCurrent(Context* context) {
  const auto& contexts = test::FakeDriver::Contexts();
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}

Result cuMemAlloc_v2(Address* address, std::size_t bytes) {
  return Driver().Allocate(bytes, *address);
}

Result cuPointerGetAttribute(void* value, int attribute, Address address) {
  const test::FakeAllocation* const found = Driver().FindAllocation(address);
  if (found == nullptr || attribute != kPointerDeviceOrdinal) return kInvalidValue;
  *static_cast<int*>(value) = found->device;
  return kSuccess;
}

Result cuMemGetAddressRange_v2(Address* base, std::size_t* bytes, Address address) {
  const test::FakeAllocation* found = nullptr;
  const Result result = Driver().Use(address, found);
  if (result != kSuccess) return result;
  *base = found->base;
  *bytes = found->memory.size();
  return kSuccess;
}

/// The handle is the base's address: only this process has to know it.
Result cuIpcGetMemHandle(IpcMemHandle* handle, Address base) {
  const test::FakeAllocation* found = nullptr;
  const Result result = Driver().Use(base, found);
  if (result != kSuccess) return result;
  if (found->base != base) return kInvalidValue;
  *handle = {};
  std::memcpy(handle->reserved, &base, sizeof(base));
  return kSuccess;
}

Result cuMemcpy(Address to, Address from, std::size_t bytes) {
  return Driver().Copy(to, from, bytes);
}

int WbFakeCudaMisuses() {
  return Driver().misuses();
}

}  // namespace wb::cuda
