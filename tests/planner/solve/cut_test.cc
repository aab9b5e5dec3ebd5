#include "planner/solve/cut.h"

#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::Draw;
using test::ForEachIndex;

std::vector<Box> RandomBoxes(std::mt19937_64& rng) {
  const auto ndim = static_cast<int>(Draw(rng, 1, 3));
  std::vector<Box> boxes;
  for (std::int64_t n = Draw(rng, 1, 6); n > 0; --n) {
    Index lo;
    Index hi;
    for (int d = 0; d < ndim; ++d) {
      lo.push_back(Draw(rng, 0, 7));
      hi.push_back(lo.back() + Draw(rng, 1, 5));
    }
    boxes.push_back(*Box::Create(lo, hi));
  }
  return boxes;
}

std::map<Index, std::vector<std::uint32_t>> HoldersByIndex(const std::vector<Box>& boxes) {
  std::map<Index, std::vector<std::uint32_t>> holders;
  for (std::uint32_t b = 0; b < boxes.size(); ++b) {
    ForEachIndex(boxes[b], [&](const Index& at) { holders[at].push_back(b); });
  }
  return holders;
}

TEST_CASE("atoms name for every element exactly the boxes that hold it", "[planner][property]") {
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const std::vector<Box> boxes = RandomBoxes(rng);
  const std::optional<std::vector<Atom>> atoms = CutIntoAtoms(boxes, UsualWork(boxes.size()));
  REQUIRE(atoms.has_value());
  std::map<Index, std::vector<std::uint32_t>> seen;
  bool twice = false;
  for (const Atom& atom : *atoms) {
    ForEachIndex(atom.box,
                 [&](const Index& at) { twice = twice || !seen.emplace(at, atom.holders).second; });
  }
  REQUIRE_FALSE(twice);
  REQUIRE(seen == HoldersByIndex(boxes));
}

TEST_CASE("the first uncovered box is wholly uncovered, and there is none only when all is covered",
          "[planner][property]") {
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  std::vector<Box> boxes = RandomBoxes(rng);
  const Box region = boxes.back();
  boxes.pop_back();
  const auto held = HoldersByIndex(boxes);
  bool covered = true;
  ForEachIndex(region, [&](const Index& at) { covered = covered && held.count(at) > 0; });
  const std::optional<Box> hole = FirstUncovered(region, boxes, UsualWork(boxes.size()));
  REQUIRE(hole.has_value() == !covered);
  if (!hole.has_value()) return;
  REQUIRE(Contains(region, *hole));
  bool free = true;
  ForEachIndex(*hole, [&](const Index& at) { free = free && held.count(at) == 0; });
  REQUIRE(free);
}

TEST_CASE("disjoint rows are their own atoms", "[planner]") {
  std::vector<Box> rows;
  for (std::int64_t r = 0; r < 64; ++r) rows.push_back(*Box::Create({r, 0}, {r + 1, 4}));
  const auto atoms = CutIntoAtoms(rows, UsualWork(rows.size()));
  REQUIRE(atoms.has_value());
  REQUIRE(atoms->size() == 64);
}

TEST_CASE("boxes that would be cut into too many atoms are given up, not counted out",
          "[planner][limit]") {
  // Slabs across each of eight dimensions: 20^8 cells.
  std::vector<Box> slabs;
  for (std::size_t dim = 0; dim < 8; ++dim) {
    for (std::int64_t i = 0; i < 10; ++i) {
      Index lo(8, 0);
      Index hi(8, 100);
      lo[dim] = 2 * i;
      hi[dim] = 2 * i + 1;
      slabs.push_back(*Box::Create(lo, hi));
    }
  }
  REQUIRE_FALSE(CutIntoAtoms(slabs, UsualWork(slabs.size())).has_value());
}

}  // namespace
}  // namespace wb
