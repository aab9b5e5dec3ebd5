#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "transport/memory/cuda/device_uuid.h"

namespace wb {

/// Which of `node`, the node's devices in the driver's order, a process sees whose
/// CUDA_VISIBLE_DEVICES is `text`, by its ordinals: the first is its device 0. Unset: all. Pure.
///
/// An entry is an index into `node`, a UUID, or the beginning of a GPU's UUID ("GPU-af7b"). CUDA's
/// rule (CUDA C++ Programming Guide, "CUDA Environment Variables") is that what comes after an
/// entry that names no device is not visible: "-1", "" and Slurm's "NoDevFiles" are none, "0,9,1"
/// on a small node is 0 alone. INVALID_ARGUMENT names the entry where CUDA says nothing useful: a
/// device that comes twice, under whatever name, for which it shows none, and a beginning that
/// several GPUs have.
[[nodiscard]] absl::StatusOr<std::vector<DeviceUuid>> ParseVisibleDevices(
    const std::optional<std::string>& text, std::span<const DeviceUuid> node);

}  // namespace wb
