#include "planner/solve/bound.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::Draw;

// max over every set U of senders of (bytes only U holds) / |U|, rounded up.
std::uint64_t BruteForce(const std::vector<EgressClass>& classes, std::uint32_t senders) {
  std::uint64_t worst = 0;
  for (std::uint32_t set = 1; set < (1U << senders); ++set) {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    for (std::uint32_t s = 0; s < senders; ++s) count += (set >> s) & 1U;
    for (const EgressClass& c : classes) {
      const bool inside = std::all_of(c.holders.begin(), c.holders.end(),
                                      [&](std::uint32_t h) { return ((set >> h) & 1U) == 1U; });
      if (inside) bytes += c.bytes;
    }
    worst = std::max(worst, (bytes + count - 1) / count);
  }
  return worst;
}

std::vector<EgressClass> RandomClasses(std::mt19937_64& rng, std::uint32_t senders) {
  std::vector<EgressClass> classes;
  for (std::int64_t n = Draw(rng, 0, 10); n > 0; --n) {
    EgressClass added;
    for (std::uint32_t s = 0; s < senders; ++s) {
      if (Draw(rng, 0, 2) == 0) added.holders.push_back(s);
    }
    if (added.holders.empty()) added.holders.push_back(static_cast<std::uint32_t>(n) % senders);
    added.bytes = static_cast<std::uint64_t>(
        Draw(rng, 0, 1) == 0 ? Draw(rng, 0, 50) : Draw(rng, 0, 1'000'000'000'000));
    classes.push_back(std::move(added));
  }
  return classes;
}

// Holders as trainers have them: each of them alone, blocks of them, and blocks of blocks.
std::vector<EgressClass> LaminarClasses(std::mt19937_64& rng, std::uint32_t senders) {
  std::vector<EgressClass> classes;
  for (std::uint32_t block = 1; block <= senders; block *= 2) {
    for (std::uint32_t first = 0; first < senders; first += block) {
      if (Draw(rng, 0, 2) == 0) continue;
      EgressClass& added = classes.emplace_back();
      for (std::uint32_t s = first; s < std::min(first + block, senders); ++s) {
        added.holders.push_back(s);
      }
      added.bytes = static_cast<std::uint64_t>(Draw(rng, 0, 50));
    }
  }
  std::shuffle(classes.begin(), classes.end(), rng);
  return classes;
}

TEST_CASE("the least maximum of egress equals brute force over all sets of senders",
          "[planner][bound][property]") {
  const bool laminar = GENERATE(false, true);
  const int round = GENERATE(range(0, 400));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " laminar " << laminar);
  std::mt19937_64 rng = test::TestRng(round);
  const auto senders = static_cast<std::uint32_t>(Draw(rng, 1, 8));
  const std::vector<EgressClass> classes =
      laminar ? LaminarClasses(rng, senders) : RandomClasses(rng, senders);
  const EgressOptimum optimum = MinimizeEgress(classes, senders);
  if (laminar) REQUIRE(optimum.laminar);
  REQUIRE(optimum.max_bytes == BruteForce(classes, senders));
}

TEST_CASE("the shares of the optimum are all bytes of each class and reach the maximum",
          "[planner][bound][property]") {
  const bool laminar = GENERATE(false, true);
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " laminar " << laminar);
  std::mt19937_64 rng = test::TestRng(round);
  const auto senders = static_cast<std::uint32_t>(Draw(rng, 1, 8));
  const std::vector<EgressClass> classes =
      laminar ? LaminarClasses(rng, senders) : RandomClasses(rng, senders);
  const EgressOptimum optimum = MinimizeEgress(classes, senders);
  std::vector<std::uint64_t> load(senders, 0);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const std::vector<std::uint64_t>& shares = optimum.shares[c];
    REQUIRE(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) == classes[c].bytes);
    for (std::size_t i = 0; i < shares.size(); ++i) load[classes[c].holders[i]] += shares[i];
  }
  REQUIRE(*std::max_element(load.begin(), load.end()) <= optimum.max_bytes);
}

TEST_CASE("a full pipeline stage sets the bound although others could help with the rest",
          "[planner][bound]") {
  // Senders 0 and 1 alone hold 100 bytes; 20 more are held by all four.
  const std::vector<EgressClass> classes{{{0, 1}, 100}, {{0, 1, 2, 3}, 20}};
  REQUIRE(MinimizeEgress(classes, 4).max_bytes == 50);
}

TEST_CASE("a bound that is not whole is rounded up", "[planner][bound]") {
  REQUIRE(MinimizeEgress(std::vector<EgressClass>{{{0, 1, 2}, 10}}, 3).max_bytes == 4);
}

TEST_CASE("nothing to send is a bound of 0", "[planner][bound]") {
  REQUIRE(MinimizeEgress({}, 4).max_bytes == 0);
  REQUIRE(MinimizeEgress({}, 0).max_bytes == 0);
  REQUIRE(MinimizeEgress(std::vector<EgressClass>{{{2}, 0}}, 3).max_bytes == 0);
}

TEST_CASE("bytes near the limit of 63 bits do not overflow", "[planner][bound][limit]") {
  const std::uint64_t half = std::uint64_t{1} << 62;
  const std::vector<EgressClass> classes{{{0}, half - 1}, {{0, 1}, half}};
  REQUIRE(MinimizeEgress(classes, 2).max_bytes == half);
}

}  // namespace
}  // namespace wb
