#include "planner/lower/chunk_cuts.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using Sizes = std::vector<std::uint64_t>;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

Sizes Cut(const Sizes& moves, std::uint64_t chunk_bytes) {
  const absl::StatusOr<Sizes> chunks = CutChunks(moves, chunk_bytes);
  REQUIRE(chunks.ok());
  return *chunks;
}

TEST_CASE("5 MiB and 3 bytes at 1 MiB are six chunks, the last of 3 bytes",
          "[planner][lower][field][case-70]") {
  REQUIRE(Cut({5 * kMiB + 3}, kMiB) == Sizes{kMiB, kMiB, kMiB, kMiB, kMiB, 3});
}

TEST_CASE("many small moves are packed into as few chunks as can be",
          "[planner][lower][field][case-139]") {
  Sizes moves(10'000, kKiB);
  for (int i = 0; i < 10; ++i) moves.insert(moves.begin() + 1'000 * i, 8 * kMiB);
  const std::uint64_t total = 10'000 * kKiB + 80 * kMiB;
  const std::uint64_t fewest = (total + kMiB - 1) / kMiB;
  const Sizes chunks = Cut(moves, kMiB);
  REQUIRE(chunks.size() <= fewest + fewest / 5);
  REQUIRE(std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0}) == total);
}

TEST_CASE("a move of at least a chunk starts one, a smaller one does not", "[planner][lower]") {
  REQUIRE(Cut({3, 10}, 10) == Sizes{3, 10});
  REQUIRE(Cut({3, 9}, 10) == Sizes{10, 2});
  REQUIRE(Cut({12, 3}, 10) == Sizes{10, 5});
}

TEST_CASE("chunks are all of the stream and none is empty or too large",
          "[planner][lower][property]") {
  const int round = GENERATE(range(0, 100));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  Sizes moves;
  for (std::int64_t n = test::Draw(rng, 0, 20); n > 0; --n) {
    moves.push_back(static_cast<std::uint64_t>(test::Draw(rng, 1, 100)));
  }
  const auto chunk_bytes = static_cast<std::uint64_t>(test::Draw(rng, 1, 60));
  const Sizes chunks = Cut(moves, chunk_bytes);
  REQUIRE(std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0}) ==
          std::accumulate(moves.begin(), moves.end(), std::uint64_t{0}));
  REQUIRE(std::all_of(chunks.begin(), chunks.end(),
                      [&](std::uint64_t bytes) { return bytes >= 1 && bytes <= chunk_bytes; }));
}

TEST_CASE("no moves are no chunks", "[planner][lower]") {
  REQUIRE(Cut({}, 10).empty());
}

TEST_CASE("a chunk size of 0, or one that makes too many chunks, is refused",
          "[planner][lower][limit]") {
  REQUIRE(CutChunks(Sizes{1}, 0).status().code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(CutChunks(Sizes{UINT64_MAX}, 1).status().code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(CutChunks(Sizes{kMaxChunksOfStream * 2}, 1).status().code() ==
          absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wb
