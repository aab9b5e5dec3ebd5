#include "planner/model/dtype.h"

#include <array>
#include <string>
#include <tuple>

#include "tests/support/catch.h"

namespace wb {
namespace {

using Row = std::tuple<Dtype, const char*, std::int64_t>;
const std::array<Row, 12> kAll = {{{Dtype::kFp64, "FP64", 8},
                                   {Dtype::kFp32, "FP32", 4},
                                   {Dtype::kFp16, "FP16", 2},
                                   {Dtype::kBf16, "BF16", 2},
                                   {Dtype::kFp8E4m3, "FP8_E4M3", 1},
                                   {Dtype::kFp8E5m2, "FP8_E5M2", 1},
                                   {Dtype::kInt64, "INT64", 8},
                                   {Dtype::kInt32, "INT32", 4},
                                   {Dtype::kInt16, "INT16", 2},
                                   {Dtype::kInt8, "INT8", 1},
                                   {Dtype::kUint8, "UINT8", 1},
                                   {Dtype::kBool, "BOOL", 1}}};

TEST_CASE("Every dtype has its name and size", "[model]") {
  for (const auto& [dtype, name, bytes] : kAll) {
    INFO(name);
    CHECK(DtypeName(dtype) == name);
    CHECK(DtypeBytes(dtype) == bytes);
  }
}

}  // namespace
}  // namespace wb
