#include "proto/door/strided.h"

#include <cstdint>
#include <random>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

constexpr std::int64_t kBig = std::int64_t{1} << 62;

TEST_CASE("Row-major strides are the products of the inner extents", "[proto]") {
  CHECK(RowMajorStrides({4, 3, 2}) == Index{6, 2, 1});
  CHECK(RowMajorStrides({5}) == Index{1});
  CHECK(RowMajorStrides({0, 3}) == Index{3, 1});
  CHECK(RowMajorStrides({3, 0}) == Index{1, 1});
}

TEST_CASE("Strides and spans that do not fit 63 bits are told, not wrapped", "[proto]") {
  CHECK_FALSE(RowMajorStrides({kBig, kBig}).has_value());
  CHECK_FALSE(RowMajorStrides(Index(8, kBig)).has_value());
  CHECK(SpanElements({kBig}, {1}) == kBig);
  CHECK_FALSE(SpanElements({3}, {kBig}).has_value());
  CHECK_FALSE(SpanElements({2, 2}, {kBig, kBig}).has_value());
}

TEST_CASE("A span reaches from the first to the last element", "[proto]") {
  CHECK(SpanElements({2, 3}, {4, 1}) == 7);
  CHECK(SpanElements({3, 2}, {1, 3}) == 6);
  CHECK(SpanElements({1, 1}, {100, 100}) == 1);
  CHECK(SpanElements({2, 0}, {4, 1}) == 0);
}

TEST_CASE("Strides nest when each steps over the span of the smaller ones", "[proto]") {
  CHECK_FALSE(NestingFault({2, 3}, {3, 1}).has_value());
  CHECK_FALSE(NestingFault({2, 3}, {1, 2}).has_value());  // transposed
  CHECK_FALSE(NestingFault({2, 3}, {8, 2}).has_value());  // padded
  CHECK_FALSE(NestingFault({1, 3}, {1, 1}).has_value());  // extent 1 does not count
  CHECK(NestingFault({2, 3}, {2, 1}) ==
        "strides[0] is 2, inside the span of the smaller strides, want at least 3");
  CHECK(NestingFault({2, 2}, {1, 1}).has_value());
}

TEST_CASE("Strides that nest give every element its own place", "[proto][property]") {
  const int round = GENERATE(range(0, 300));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  std::uniform_int_distribution<std::int64_t> extent(1, 4);
  std::uniform_int_distribution<std::int64_t> stride(1, 12);
  const Index shape = {extent(rng), extent(rng), extent(rng)};
  const Index strides = {stride(rng), stride(rng), stride(rng)};
  if (NestingFault(shape, strides).has_value()) return;
  std::set<std::int64_t> places;
  for (std::int64_t a = 0; a < shape[0]; ++a) {
    for (std::int64_t b = 0; b < shape[1]; ++b) {
      for (std::int64_t c = 0; c < shape[2]; ++c) {
        CHECK(places.insert(a * strides[0] + b * strides[1] + c * strides[2]).second);
      }
    }
  }
  CHECK(SpanElements(shape, strides) == *places.rbegin() + 1);
}

}  // namespace
}  // namespace wb
