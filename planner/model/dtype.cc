#include "planner/model/dtype.h"

#include <array>
#include <cstddef>

namespace wb {
namespace {

struct DtypeEntry {
  Dtype dtype;
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array kDtypes = {
    DtypeEntry{Dtype::kFp64, "FP64", 8},        DtypeEntry{Dtype::kFp32, "FP32", 4},
    DtypeEntry{Dtype::kFp16, "FP16", 2},        DtypeEntry{Dtype::kBf16, "BF16", 2},
    DtypeEntry{Dtype::kFp8E4m3, "FP8_E4M3", 1}, DtypeEntry{Dtype::kFp8E5m2, "FP8_E5M2", 1},
    DtypeEntry{Dtype::kInt64, "INT64", 8},      DtypeEntry{Dtype::kInt32, "INT32", 4},
    DtypeEntry{Dtype::kInt16, "INT16", 2},      DtypeEntry{Dtype::kInt8, "INT8", 1},
    DtypeEntry{Dtype::kUint8, "UINT8", 1},      DtypeEntry{Dtype::kBool, "BOOL", 1},
};

// The table is indexed by the enum's value.
constexpr bool InEnumOrder() {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    if (static_cast<std::size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(InEnumOrder());

}  // namespace

std::int64_t DtypeBytes(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].bytes;
}

std::string_view DtypeName(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].name;
}

}  // namespace wb
