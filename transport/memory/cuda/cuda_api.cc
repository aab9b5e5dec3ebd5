#include "transport/memory/cuda/cuda_api.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr std::size_t kNameBytes = 256;

absl::Status NoCuda(const std::string& why) {
  return absl::UnavailableError(absl::StrCat("no CUDA: ", why));
}

/// Finds functions of a library, and remembers the first that it lacks.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}
  template <typename Function>
  void Find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace

absl::StatusOr<CudaApi> CudaApi::Load(const std::string& library) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  // dlerror's text names the library, and is this thread's.
  if (opened == nullptr) return NoCuda(::dlerror());  // NOLINT(concurrency-mt-unsafe)
  Finder finder(opened);
  CudaApi api;
  finder.Find("cuInit", api.init_);
  finder.Find("cuGetErrorName", api.get_error_name_);
  finder.Find("cuDeviceGetCount", api.device_get_count_);
  finder.Find("cuDeviceGet", api.device_get_);
  finder.Find("cuDeviceGetName", api.device_get_name_);
  finder.Find("cuDeviceGetUuid", api.device_get_uuid_);
  finder.Find("cuDeviceGetUuid_v2", api.device_get_uuid_v2_);
  finder.Find("cuDevicePrimaryCtxRetain", api.primary_ctx_retain_);
  finder.Find("cuDevicePrimaryCtxRelease_v2", api.primary_ctx_release_);
  finder.Find("cuCtxPushCurrent_v2", api.ctx_push_current_);
  finder.Find("cuCtxPopCurrent_v2", api.ctx_pop_current_);
  finder.Find("cuPointerGetAttribute", api.pointer_get_attribute_);
  finder.Find("cuMemGetAddressRange_v2", api.mem_get_address_range_);
  finder.Find("cuIpcGetMemHandle", api.ipc_get_mem_handle_);
  finder.Find("cuMemcpy", api.memcpy_);
  if (!finder.missing().empty()) {
    return NoCuda(absl::StrCat(library, " has no ", finder.missing()));
  }
  const absl::Status initialised = api.ToStatus("cuInit", api.init_(0));
  if (!initialised.ok()) return NoCuda(absl::StrCat(library, ": ", initialised.message()));
  return api;
}

absl::StatusOr<int> CudaApi::DeviceCount() const {
  int count = 0;
  WB_RETURN_IF_ERROR(ToStatus("cuDeviceGetCount", device_get_count_(&count)));
  return count;
}

absl::StatusOr<cuda::Device> CudaApi::GetDevice(int ordinal) const {
  cuda::Device device = 0;
  WB_RETURN_IF_ERROR(ToStatus("cuDeviceGet", device_get_(&device, ordinal)));
  return device;
}

absl::StatusOr<DeviceUuid> CudaApi::GetUuid(cuda::Device device) const {
  cuda::Uuid gpu{};
  cuda::Uuid own{};
  WB_RETURN_IF_ERROR(ToStatus("cuDeviceGetUuid", device_get_uuid_(&gpu, device)));
  WB_RETURN_IF_ERROR(ToStatus("cuDeviceGetUuid_v2", device_get_uuid_v2_(&own, device)));
  // The driver says no other way which of the two a device is.
  const bool whole = std::ranges::equal(gpu.bytes, own.bytes);
  DeviceUuid::Bytes bytes{};
  std::copy(std::begin(own.bytes), std::end(own.bytes), bytes.begin());
  return DeviceUuid(whole ? DeviceUuid::Kind::kGpu : DeviceUuid::Kind::kMig, bytes);
}

absl::StatusOr<std::string> CudaApi::GetName(cuda::Device device) const {
  std::array<char, kNameBytes> name{};
  WB_RETURN_IF_ERROR(
      ToStatus("cuDeviceGetName", device_get_name_(name.data(), kNameBytes - 1, device)));
  return std::string(name.data());
}

absl::StatusOr<cuda::Context> CudaApi::RetainPrimaryContext(cuda::Device device) const {
  cuda::Context context = nullptr;
  WB_RETURN_IF_ERROR(ToStatus("cuDevicePrimaryCtxRetain", primary_ctx_retain_(&context, device)));
  return context;
}

absl::Status CudaApi::ReleasePrimaryContext(cuda::Device device) const {
  return ToStatus("cuDevicePrimaryCtxRelease", primary_ctx_release_(device));
}

absl::Status CudaApi::PushCurrent(cuda::Context context) const {
  return ToStatus("cuCtxPushCurrent", ctx_push_current_(context));
}

absl::Status CudaApi::PopCurrent() const {
  cuda::Context popped = nullptr;
  return ToStatus("cuCtxPopCurrent", ctx_pop_current_(&popped));
}

absl::StatusOr<int> CudaApi::GetOrdinal(cuda::Address address) const {
  int ordinal = 0;
  WB_RETURN_IF_ERROR(
      ToStatus("cuPointerGetAttribute",
               pointer_get_attribute_(&ordinal, cuda::kPointerDeviceOrdinal, address)));
  return ordinal;
}

absl::StatusOr<CudaApi::Allocation> CudaApi::FindAllocation(cuda::Address address) const {
  cuda::Address base = 0;
  std::size_t bytes = 0;
  WB_RETURN_IF_ERROR(
      ToStatus("cuMemGetAddressRange", mem_get_address_range_(&base, &bytes, address)));
  return Allocation{base, bytes};
}

absl::StatusOr<cuda::IpcMemHandle> CudaApi::GetIpcHandle(cuda::Address base) const {
  cuda::IpcMemHandle handle{};
  WB_RETURN_IF_ERROR(ToStatus("cuIpcGetMemHandle", ipc_get_mem_handle_(&handle, base)));
  return handle;
}

absl::Status CudaApi::Copy(cuda::Address to, cuda::Address from, std::uint64_t bytes) const {
  return ToStatus("cuMemcpy", memcpy_(to, from, bytes));
}

absl::Status CudaApi::ToStatus(const char* call, cuda::Result result) const {
  if (result == cuda::kSuccess) return absl::OkStatus();
  const char* name = nullptr;
  if (get_error_name_(result, &name) != cuda::kSuccess) name = "an error without a name";
  return absl::InternalError(absl::StrCat(call, ": ", name, " (", result, ")"));
}

}  // namespace wb
