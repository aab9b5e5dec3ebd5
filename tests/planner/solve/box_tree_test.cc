#include "planner/model/box_tree.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::Draw;

Box RandomBox(std::mt19937_64& rng, int ndim) {
  Index lo;
  Index hi;
  for (int d = 0; d < ndim; ++d) {
    lo.push_back(Draw(rng, 0, 20));
    hi.push_back(lo.back() + Draw(rng, 1, 6));
  }
  return *Box::Create(lo, hi);
}

TEST_CASE("a box tree finds the boxes that a look at each would find", "[planner][property]") {
  const int round = GENERATE(range(0, 100));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const auto ndim = static_cast<int>(Draw(rng, 1, 4));
  std::vector<Box> boxes;
  for (std::int64_t n = Draw(rng, 0, 60); n > 0; --n) boxes.push_back(RandomBox(rng, ndim));
  const BoxTree tree(boxes);
  for (int query = 0; query < 10; ++query) {
    const Box box = RandomBox(rng, ndim);
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < boxes.size(); ++i) {
      if (Intersect(boxes[i], box).has_value()) expected.push_back(i);
    }
    REQUIRE(tree.Meeting(box) == expected);
  }
}

TEST_CASE("a visit of a box tree ends when it is told to", "[planner]") {
  std::vector<Box> boxes;
  for (std::int64_t i = 0; i < 50; ++i) boxes.push_back(*Box::Create({i}, {i + 1}));
  const BoxTree tree(boxes);
  int visits = 0;
  tree.Visit(*Box::Create({0}, {50}), [&](std::size_t /*index*/) { return ++visits < 3; });
  REQUIRE(visits == 3);
}

TEST_CASE("a box tree over nothing finds nothing, and equal boxes are all found", "[planner]") {
  const BoxTree none({});
  REQUIRE(none.Meeting(*Box::Create({0}, {1})).empty());
  const std::vector<Box> equal(20, *Box::Create({0, 0}, {2, 2}));
  REQUIRE(BoxTree(equal).Meeting(*Box::Create({1, 1}, {9, 9})).size() == 20);
}

}  // namespace
}  // namespace wb
