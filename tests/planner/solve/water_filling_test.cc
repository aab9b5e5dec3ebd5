#include "planner/solve/water_filling.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::Draw;

// Gives byte after byte to the first of the lowest.
std::vector<std::uint64_t> PourByteByByte(std::vector<std::uint64_t> levels, std::uint64_t bytes) {
  for (; bytes > 0; --bytes) ++*std::min_element(levels.begin(), levels.end());
  return levels;
}

TEST_CASE("what is poured comes to the levels that byte after byte to the lowest would",
          "[planner][property]") {
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  std::vector<std::uint64_t> levels;
  for (std::int64_t n = Draw(rng, 1, 8); n > 0; --n) {
    levels.push_back(static_cast<std::uint64_t>(Draw(rng, 0, 30)));
  }
  const auto bytes = static_cast<std::uint64_t>(Draw(rng, 0, 200));
  const std::vector<std::uint64_t> poured = Pour(levels, bytes);
  REQUIRE(std::accumulate(poured.begin(), poured.end(), std::uint64_t{0}) == bytes);
  std::vector<std::uint64_t> after;
  for (std::size_t i = 0; i < levels.size(); ++i) after.push_back(levels[i] + poured[i]);
  std::vector<std::uint64_t> expected = PourByteByByte(levels, bytes);
  std::sort(after.begin(), after.end());
  std::sort(expected.begin(), expected.end());
  REQUIRE(after == expected);
}

TEST_CASE("levels near the limit of 63 bits do not overflow", "[planner][limit]") {
  const std::uint64_t half = std::uint64_t{1} << 62;
  REQUIRE(Pour(std::vector<std::uint64_t>{half, 0, 0}, half) ==
          std::vector<std::uint64_t>{0, half / 2, half / 2});
}

using Set = std::vector<std::uint32_t>;

bool LaminarByPairs(const std::vector<Set>& sets) {
  for (const Set& a : sets) {
    for (const Set& b : sets) {
      Set both;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
      if (!both.empty() && both.size() < std::min(a.size(), b.size())) return false;
    }
  }
  return true;
}

bool IsLaminar(const std::vector<Set>& sets, std::size_t members) {
  const std::vector<std::span<const std::uint32_t>> spans(sets.begin(), sets.end());
  return wb::IsLaminar(spans, members);
}

TEST_CASE("sets are laminar when every two of them are nested or apart", "[planner][property]") {
  const int round = GENERATE(range(0, 400));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  std::vector<Set> sets;
  for (std::int64_t n = Draw(rng, 0, 5); n > 0; --n) {
    // Intervals between few bounds are laminar often enough.
    const std::int64_t lo = 2 * Draw(rng, 0, 3);
    const std::int64_t hi = 2 * Draw(rng, 1, 4);
    Set& set = sets.emplace_back();
    for (std::int64_t m = std::min(lo, hi - 1); m < std::max(hi, lo + 1); ++m) {
      set.push_back(static_cast<std::uint32_t>(m));
    }
  }
  REQUIRE(IsLaminar(sets, 8) == LaminarByPairs(sets));
}

TEST_CASE("no sets, equal sets and chains are laminar; two that cross are not", "[planner]") {
  REQUIRE(IsLaminar({}, 0));
  REQUIRE(IsLaminar({{0, 1}, {0, 1}, {0, 1, 2}}, 3));
  REQUIRE_FALSE(IsLaminar({{0, 1}, {1, 2}}, 3));
  REQUIRE_FALSE(IsLaminar({{0}, {0, 1}, {2}, {1, 2, 3}}, 4));
}

}  // namespace
}  // namespace wb
