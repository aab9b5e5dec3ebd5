#include "proto/door/box_overlaps.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using Pairs = std::set<std::pair<std::size_t, std::size_t>>;

Box Make(Index lo, Index hi) {
  return *Box::Create(std::move(lo), std::move(hi));
}

Pairs Found(const std::vector<Box>& boxes) {
  StepBudget budget(1'000'000);
  Pairs pairs;
  const bool done = FindOverlaps(boxes, budget, [&](std::size_t a, std::size_t b) {
    CHECK(a < b);
    CHECK(pairs.emplace(a, b).second);  // once each
    return true;
  });
  CHECK(done);
  return pairs;
}

TEST_CASE("Overlaps are found exactly where pairwise intersection finds them",
          "[proto][property]") {
  const int round = GENERATE(range(0, 100));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  std::uniform_int_distribution<std::int64_t> at(0, 20);
  std::uniform_int_distribution<std::int64_t> extent(1, 1 + round % 7);
  std::vector<Box> boxes;
  for (int i = 0; i < 40; ++i) {
    const Index lo = {at(rng), at(rng), at(rng)};
    boxes.push_back(Make(lo, {lo[0] + extent(rng), lo[1] + extent(rng), lo[2] + extent(rng)}));
  }
  Pairs wanted;
  for (std::size_t a = 0; a < boxes.size(); ++a) {
    for (std::size_t b = a + 1; b < boxes.size(); ++b) {
      if (Intersect(boxes[a], boxes[b]).has_value()) wanted.emplace(a, b);
    }
  }
  CHECK(Found(boxes) == wanted);
}

TEST_CASE("A tiling of ten thousand boxes costs far less than its pairs", "[proto]") {
  std::vector<Box> boxes;
  for (std::int64_t x = 0; x < 100; ++x) {
    for (std::int64_t y = 0; y < 100; ++y) boxes.push_back(Make({x, y}, {x + 1, y + 1}));
  }
  CHECK(Found(boxes).empty());
}

TEST_CASE("Boxes that no plane separates are compared pair by pair", "[proto]") {
  // A pinwheel of four around a fifth.
  const std::vector<Box> pinwheel = {Make({0, 0}, {2, 1}), Make({2, 0}, {3, 2}),
                                     Make({1, 2}, {3, 3}), Make({0, 1}, {1, 3}),
                                     Make({1, 1}, {2, 2})};
  CHECK(Found(pinwheel).empty());
}

TEST_CASE("The search for overlaps ends with its budget", "[proto]") {
  const std::vector<Box> same(1000, Make({0, 0}, {4, 4}));
  StepBudget budget(10'000);
  std::size_t told = 0;
  CHECK_FALSE(FindOverlaps(same, budget, [&](std::size_t, std::size_t) {
    ++told;
    return true;
  }));
  CHECK(told < 20'000);
}

TEST_CASE("The search for overlaps stops when it is told to", "[proto]") {
  const std::vector<Box> same(100, Make({0}, {4}));
  StepBudget budget(1'000'000);
  int told = 0;
  CHECK(FindOverlaps(same, budget, [&](std::size_t, std::size_t) { return ++told < 3; }));
  CHECK(told == 3);
}

TEST_CASE("No boxes have no overlaps", "[proto]") {
  CHECK(Found({}).empty());
}

}  // namespace
}  // namespace wb
