#pragma once

#include <cstddef>

#include "transport/memory/cuda/driver.h"

// The fake's functions beyond those that we use ourselves: what workers call, and what tests ask.

namespace wb::cuda {

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {
Result cuCtxGetCurrent(Context* context);
Result cuDevicePrimaryCtxGetState(Device device, unsigned int* flags, int* active);
Result cuMemAlloc_v2(Address* address, std::size_t bytes);
}
// NOLINTEND(readability-identifier-naming)

/// Calls on memory that were made without a context, or with another device's.
extern "C" int WbFakeCudaMisuses();

/// The environment that says what devices the node has: UUIDs with commas between, a slice as
/// "MIG-...@GPU-...".
inline constexpr char kFakeNodeVariable[] = "WB_FAKE_CUDA_NODE";
inline constexpr char kVisibleVariable[] = "CUDA_VISIBLE_DEVICES";

}  // namespace wb::cuda
