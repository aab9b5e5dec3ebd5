#include "planner/base/checked_math.h"

#include <cstdint>
#include <limits>
#include <string>

#include "tests/support/catch.h"

namespace wb {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t kUnsignedMax = std::numeric_limits<std::uint64_t>::max();

TEST_CASE("CheckedMul gives every product that fits", "[base]") {
  CHECK(*CheckedMul<std::int64_t>(6, 7) == 42);
  CHECK(*CheckedMul<std::int64_t>(kMax, 1) == kMax);
  CHECK(*CheckedMul<std::int64_t>(kMax, 0) == 0);
  CHECK(*CheckedMul<std::int64_t>(-4, 5) == -20);
  CHECK(*CheckedMul<std::uint64_t>(kUnsignedMax, 1) == kUnsignedMax);
}

TEST_CASE("CheckedMul refuses a product that does not fit, naming both factors", "[base]") {
  const std::int64_t big = std::int64_t{1} << 62;
  const auto product = CheckedMul<std::int64_t>(big, 2);
  CHECK(product.status().code() == absl::StatusCode::kOutOfRange);
  CHECK(std::string(product.status().message()) == "4611686018427387904 * 2 does not fit 64 bits");
  CHECK_FALSE(CheckedMul<std::int64_t>(kMin, -1).ok());
  CHECK_FALSE(CheckedMul<std::uint64_t>(kUnsignedMax, 2).ok());
}

TEST_CASE("CheckedAdd gives every sum that fits", "[base]") {
  CHECK(*CheckedAdd<std::int64_t>(kMax - 1, 1) == kMax);
  CHECK(*CheckedAdd<std::int64_t>(kMin, kMax) == -1);
  CHECK(*CheckedAdd<std::uint64_t>(kUnsignedMax, 0) == kUnsignedMax);
}

TEST_CASE("CheckedAdd refuses a sum that does not fit, in either direction", "[base]") {
  CHECK(CheckedAdd<std::int64_t>(kMax, 1).status().code() == absl::StatusCode::kOutOfRange);
  CHECK_FALSE(CheckedAdd<std::int64_t>(kMin, -1).ok());
  CHECK_FALSE(CheckedAdd<std::uint64_t>(kUnsignedMax, 1).ok());
}

TEST_CASE("InRange tells a range inside a size from one that is not", "[base]") {
  CHECK(InRange<std::uint64_t>(0, 0, 0));
  CHECK(InRange<std::uint64_t>(2, 8, 10));
  CHECK(InRange<std::uint64_t>(10, 0, 10));
  CHECK_FALSE(InRange<std::uint64_t>(3, 8, 10));
  CHECK_FALSE(InRange<std::uint64_t>(11, 0, 10));
}

TEST_CASE("InRange does not overflow at the largest numbers", "[base]") {
  CHECK_FALSE(InRange<std::uint64_t>(kUnsignedMax, kUnsignedMax, 10));
  CHECK_FALSE(InRange<std::uint64_t>(1, kUnsignedMax, kUnsignedMax));
  CHECK(InRange<std::uint64_t>(0, kUnsignedMax, kUnsignedMax));
}

}  // namespace
}  // namespace wb
