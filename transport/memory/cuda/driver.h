#pragma once

#include <cstddef>

// What we use of the CUDA driver, declared as in cuda.h of CUDA 12 (CUDA Driver API, "Data types
// used by CUDA driver" and the pages of the functions), so that building needs no CUDA toolkit.
// Where cuda.h calls a function's second form by the name of the first, here is the name that
// libcuda.so.1 exports. Nothing is linked: CudaApi finds the functions at run time.

namespace wb::cuda {

using Result = int;                  // CUresult
using Device = int;                  // CUdevice, of this process
struct ContextState;                 // CUctx_st, the driver's own
using Context = ContextState*;       // CUcontext
using Address = unsigned long long;  // CUdeviceptr; of host memory too (unified addressing)

struct Uuid {  // CUuuid
  char bytes[16];
};

struct IpcMemHandle {  // CUipcMemHandle
  char reserved[64];
};

inline constexpr Result kSuccess = 0;            // CUDA_SUCCESS
inline constexpr int kPointerDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {
Result cuInit(unsigned int flags);
Result cuGetErrorName(Result error, const char** name);
Result cuDeviceGetCount(int* count);
Result cuDeviceGet(Device* device, int ordinal);
Result cuDeviceGetName(char* name, int room, Device device);
/// Of the GPU, also where the device is a slice of it.
Result cuDeviceGetUuid(Uuid* uuid, Device device);
/// Of the slice, where the device is one.
Result cuDeviceGetUuid_v2(Uuid* uuid, Device device);
Result cuDevicePrimaryCtxRetain(Context* context, Device device);
Result cuDevicePrimaryCtxRelease_v2(Device device);
Result cuCtxPushCurrent_v2(Context context);
Result cuCtxPopCurrent_v2(Context* context);
Result cuPointerGetAttribute(void* value, int attribute, Address address);
Result cuMemGetAddressRange_v2(Address* base, std::size_t* bytes, Address address);
Result cuIpcGetMemHandle(IpcMemHandle* handle, Address base);
Result cuMemcpy(Address to, Address from, std::size_t bytes);
}
// NOLINTEND(readability-identifier-naming)

}  // namespace wb::cuda
