#pragma once

#include <cstdint>
#include <string_view>

namespace wb {

/// Element types, named as in layout files.
enum class Dtype : std::uint8_t {
  kFp64,
  kFp32,
  kFp16,
  kBf16,
  kFp8E4m3,
  kFp8E5m2,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint8,
  kBool
};

/// Size of one element, in bytes.
[[nodiscard]] std::int64_t DtypeBytes(Dtype dtype);
/// "FP32", "BF16", "FP8_E4M3", ...: the names of layout files.
[[nodiscard]] std::string_view DtypeName(Dtype dtype);

}  // namespace wb
