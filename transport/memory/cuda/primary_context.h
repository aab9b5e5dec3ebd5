#pragma once

#include "planner/base/unique_handle.h"
#include "transport/memory/cuda/cuda_api.h"

namespace wb {

/// A use of a device's primary context, the one that CUDA's runtime uses too.
struct PrimaryContext {
  const CudaApi* api = nullptr;
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  friend bool operator==(const PrimaryContext&, const PrimaryContext&) = default;
};

struct PrimaryContextTraits {
  using Raw = PrimaryContext;
  static constexpr Raw kNull{};
  static void Close(Raw raw) noexcept {
    // It fails where the driver is at its end, as within exit(): then there is nothing to release.
    raw.api->ReleasePrimaryContext(raw.device).IgnoreError();
  }
};

/// Owns a use of a primary context.
using PrimaryContextHandle = UniqueHandle<PrimaryContextTraits>;

}  // namespace wb
