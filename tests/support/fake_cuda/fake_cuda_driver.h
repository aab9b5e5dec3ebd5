#pragma once

#include <cstddef>

#include "transport/memory/cuda/driver.h"

// The fake's functions beyond those that we use ourselves: what workers call, and what tests ask.

namespace wb::cuda {

inline constexpr Result kInvalidValue = 1;      // CUDA_ERROR_INVALID_VALUE
inline constexpr Result kNoDevice = 100;        // CUDA_ERROR_NO_DEVICE
inline constexpr Result kInvalidDevice = 101;   // CUDA_ERROR_INVALID_DEVICE
inline constexpr Result kInvalidContext = 201;  // CUDA_ERROR_INVALID_CONTEXT

extern "C" {
Result cuCtxGetCurrent(Context* context);
Result cuDevicePrimaryCtxGetState(Device device, unsigned int* flags, int* active);
Result cuMemAlloc_v2(Address* address, std::size_t bytes);
}

/// Calls on memory that were made without a context, or with another device's.
extern "C" int WbFakeCudaMisuses();

/// The environment that says what devices the node has: UUIDs with commas between, a slice as
/// "MIG-...@GPU-...".
inline constexpr char kFakeNodeVariable[] = "WB_FAKE_CUDA_NODE";
inline constexpr char kVisibleVariable[] = "CUDA_VISIBLE_DEVICES";

}  // namespace wb::cuda
