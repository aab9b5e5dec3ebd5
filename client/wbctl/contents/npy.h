#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "absl/status/status.h"

#include "planner/model/layout.h"

namespace wb {

/// `group-rank-param.npy`: '%' and '/' of the param become %25 and %2F.
[[nodiscard]] std::string NpyFileName(const WorkerName& worker, const std::string& param);

/// Writes a param that lies in `buffer` as a NumPy file: little endian, C order of its local
/// shape. BF16 is written as uint16 bits, FP8 and BOOL as uint8. Replaces a file of that name.
[[nodiscard]] absl::Status WriteNpy(const std::filesystem::path& path,
                                    const Param& param,
                                    std::span<const std::byte> buffer);

}  // namespace wb
