#include "planner/model/box.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "absl/container/flat_hash_set.h"

#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Box Make(Index lo, Index hi) {
  return *Box::Create(std::move(lo), std::move(hi));
}

std::string Fault(Index lo, Index hi) {
  const absl::StatusOr<Box> box = Box::Create(std::move(lo), std::move(hi));
  REQUIRE(box.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(box.status().message());
}

TEST_CASE("A box knows its extents, its elements and its text", "[model]") {
  const Box box = Make({2, 0, 5}, {4, 3, 6});
  CHECK(box.ndim() == 3);
  CHECK(box.extent(0) == 2);
  CHECK(box.elements() == 6);
  CHECK(box.ToString() == "[2,0,5]..[4,3,6]");
}

TEST_CASE("A box has one to eight dimensions, as many in lo as in hi", "[model]") {
  CHECK(Fault({}, {}) == "box: lo has 0 dimensions and hi has 0, want as many of both and 1..8");
  CHECK(Fault({0}, {1, 1}) ==
        "box: lo has 1 dimensions and hi has 2, want as many of both and 1..8");
  CHECK(Fault(Index(9, 0), Index(9, 1)) ==
        "box: lo has 9 dimensions and hi has 9, want as many of both and 1..8");
  CHECK(Box::Create(Index(8, 0), Index(8, 1)).ok());
}

TEST_CASE("A box that is empty, reversed or below zero cannot be made", "[model]") {
  CHECK(Fault({0, 3}, {1, 3}) == "box: dimension 1 has lo 3 and hi 3, want 0 <= lo < hi");
  CHECK(Fault({4}, {3}) == "box: dimension 0 has lo 4 and hi 3, want 0 <= lo < hi");
  CHECK(Fault({-1}, {3}) == "box: dimension 0 has lo -1 and hi 3, want 0 <= lo < hi");
}

TEST_CASE("A box whose elements do not fit 64 bits cannot be made", "[model]") {
  CHECK(Box::Create({0}, {kMax}).ok());
  CHECK(Fault({0, 0}, {kMax, 2}).find("does not fit 64 bits") != std::string::npos);
  const std::int64_t big = std::int64_t{1} << 62;
  CHECK(Fault(Index(8, 0), Index(8, big)).find("does not fit 64 bits") != std::string::npos);
}

TEST_CASE("Boxes are ordered by lo and then hi, and hash by value", "[model]") {
  CHECK(Make({0, 0}, {1, 1}) < Make({0, 1}, {1, 2}));
  CHECK(Make({0, 0}, {1, 1}) < Make({0, 0}, {1, 2}));
  CHECK((Make({1}, {2}) <=> Make({1}, {2})) == std::strong_ordering::equal);
  const absl::flat_hash_set<Box> boxes = {Make({0}, {1}), Make({0}, {1}), Make({1}, {2})};
  CHECK(boxes.size() == 2);
}

TEST_CASE("Split cuts a box in two that Join makes whole again", "[model]") {
  const Box box = Make({2, 3}, {6, 9});
  const auto [below, above] = Split(box, 1, 5);
  CHECK(below == Make({2, 3}, {6, 5}));
  CHECK(above == Make({2, 5}, {6, 9}));
  CHECK(Join(below, above) == box);
  CHECK(Join(above, below) == box);
}

TEST_CASE("Join wants boxes that touch along one dimension and agree in all others", "[model]") {
  const Box box = Make({0, 0}, {2, 2});
  CHECK_FALSE(Join(box, box).has_value());
  CHECK_FALSE(Join(box, Make({0, 3}, {2, 4})).has_value());  // a gap
  CHECK_FALSE(Join(box, Make({0, 1}, {2, 3})).has_value());  // an overlap
  CHECK_FALSE(Join(box, Make({0, 2}, {1, 4})).has_value());  // another height
  CHECK_FALSE(Join(box, Make({2, 2}, {4, 4})).has_value());  // a corner
}

TEST_CASE("Join does not make a box whose elements do not fit 64 bits", "[model]") {
  const std::int64_t half = std::int64_t{1} << 31;
  const Box a = Make({0, 0}, {half, half * 2 - 1});
  const Box b = Make({half, 0}, {half * 2, half * 2 - 1});
  CHECK(a.elements() > kMax / 2 - half * 4);
  CHECK_FALSE(Join(a, b).has_value());
}

constexpr std::int64_t kSide = 6;

Box RandomBox(std::mt19937_64& rng) {
  std::uniform_int_distribution<std::int64_t> at(0, kSide);
  Index lo;
  Index hi;
  while (lo.size() < 2) {
    const auto [from, to] = std::minmax({at(rng), at(rng)});
    if (from == to) continue;
    lo.push_back(from);
    hi.push_back(to);
  }
  return Make(lo, hi);
}

bool Holds(const Box& box, const std::array<std::int64_t, 2>& point) {
  return box.lo()[0] <= point[0] && point[0] < box.hi()[0] && box.lo()[1] <= point[1] &&
         point[1] < box.hi()[1];
}

TEST_CASE("Intersect, Contains and Join agree with testing every point", "[model][property]") {
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Box a = RandomBox(rng);
  const Box b = RandomBox(rng);
  const std::optional<Box> both = Intersect(a, b);
  const std::optional<Box> joined = Join(a, b);
  bool b_in_a = true;
  for (std::int64_t x = 0; x < kSide; ++x) {
    for (std::int64_t y = 0; y < kSide; ++y) {
      const std::array<std::int64_t, 2> point{x, y};
      REQUIRE((both && Holds(*both, point)) == (Holds(a, point) && Holds(b, point)));
      if (joined) REQUIRE(Holds(*joined, point) == (Holds(a, point) || Holds(b, point)));
      b_in_a = b_in_a && (!Holds(b, point) || Holds(a, point));
    }
  }
  CHECK(Contains(a, b) == b_in_a);
}

}  // namespace
}  // namespace wb
