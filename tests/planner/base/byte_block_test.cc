#include "planner/base/byte_block.h"

#include "tests/support/catch.h"

namespace wb {
namespace {

TEST_CASE("A byte block without dimensions is one run", "[base]") {
  const ByteBlock block{64, 32, {}};
  CHECK(block.contiguous());
  CHECK(block.bytes() == 32);
}

TEST_CASE("A strided byte block counts its runs", "[base]") {
  const ByteBlock block{0, 4, {{3, 64}, {2, 16}}};
  CHECK_FALSE(block.contiguous());
  CHECK(block.bytes() == 24);
}

TEST_CASE("A byte block of an empty dimension holds no bytes", "[base]") {
  const ByteBlock block{8, 4, {{0, 64}}};
  CHECK(block.bytes() == 0);
}

}  // namespace
}  // namespace wb
