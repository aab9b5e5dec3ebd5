#include "planner/base/divide_up.h"

#include <cstdint>
#include <limits>

#include "tests/support/catch.h"

namespace wb {
namespace {

TEST_CASE("a quotient is rounded up, to the end of the type", "[base]") {
  CHECK(DivideUp<std::uint64_t>(0, 3) == 0);
  CHECK(DivideUp<std::uint64_t>(6, 3) == 2);
  CHECK(DivideUp<std::uint64_t>(7, 3) == 3);
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  CHECK(DivideUp<std::uint64_t>(kMost, 2) == kMost / 2 + 1);
  CHECK(DivideUp<std::uint64_t>(kMost, kMost) == 1);
}

}  // namespace
}  // namespace wb
