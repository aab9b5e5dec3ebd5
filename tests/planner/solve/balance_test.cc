#include "planner/solve/balance.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

namespace wb {
namespace {

constexpr std::int64_t kRow = 1 << 16;

// One part of `mib` MiB.
SentPart PartOf(std::uint32_t item, std::uint32_t holders, std::uint32_t sender, int mib) {
  return {item, holders, sender, 0, 16 * mib, kRow};
}

std::vector<std::uint64_t> LoadsOf(const std::vector<SentPart>& parts, std::size_t senders) {
  std::vector<std::uint64_t> load(senders, 0);
  for (const SentPart& part : parts) load[part.sender] += part.bytes();
  return load;
}

TEST_CASE("a full sender whose peers are as full gives rows through them to one that has room",
          "[planner][solve]") {
  // Only neighbours hold the same; the last sends nothing yet.
  const std::vector<Holders> holders{{0, 1}, {1, 2}, {2, 3}};
  const std::uint64_t target = std::uint64_t{6} << 20;
  const std::vector<SentPart> parts =
      Balancer(holders, {0, 0, 0, 0}, {PartOf(0, 0, 0, 8), PartOf(1, 1, 1, 8), PartOf(2, 2, 2, 8)})
          .Run(target);
  for (const std::uint64_t load : LoadsOf(parts, 4)) CHECK(load == target);
  std::vector<std::int64_t> rows(3, 0);
  for (const SentPart& part : parts) {
    CHECK(std::binary_search(holders[part.holders].begin(), holders[part.holders].end(),
                             part.sender));
    CHECK(part.bytes() >= kMinPartBytes);
    rows[part.item] += part.hi - part.lo;
  }
  CHECK(rows == std::vector<std::int64_t>{128, 128, 128});
}

TEST_CASE("what may not be split stays where it is when no one has room for it",
          "[planner][solve]") {
  const std::vector<Holders> holders{{0, 1}};
  const std::vector<SentPart> parts =
      Balancer(holders, {0, std::uint64_t{1} << 20}, {PartOf(0, 0, 0, 1)}).Run(1 << 19);
  CHECK(LoadsOf(parts, 2) == std::vector<std::uint64_t>{1 << 20, 0});
}

}  // namespace
}  // namespace wb
