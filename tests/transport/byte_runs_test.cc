#include "transport/copy/byte_runs.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/seed.h"
#include "transport/copy/stream_copy.h"

namespace wb {
namespace {

using Bytes = std::vector<std::byte>;

std::uint64_t Draw(std::mt19937_64& rng, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(rng);
}

/// A block without self-overlap: strides leave room for what lies inside, often none to spare, so
/// that runs touch. Dims are then reordered, as a transposed parameter's are.
ByteBlock RandomBlock(std::mt19937_64& rng, std::uint64_t run_bytes) {
  ByteBlock block;
  block.offset = Draw(rng, 0, 9);
  block.run_bytes = run_bytes;
  std::uint64_t room = run_bytes;
  const std::uint64_t ndim = Draw(rng, 0, 4);
  for (std::uint64_t d = 0; d < ndim; ++d) {
    const std::uint64_t stride = room + (Draw(rng, 0, 1) == 0 ? 0 : Draw(rng, 0, 5));
    const std::uint64_t extent = Draw(rng, 1, 4);
    block.dims.push_back({extent, stride});
    room = stride * extent;
  }
  std::shuffle(block.dims.begin(), block.dims.end(), rng);
  return block;
}

/// Offsets in the buffer of every byte of the block, in packed order: the slow way.
std::vector<std::uint64_t> Offsets(const ByteBlock& block) {
  std::vector<std::uint64_t> offsets{block.offset};
  for (const ByteDim& dim : block.dims) {
    std::vector<std::uint64_t> next;
    for (const std::uint64_t base : offsets) {
      for (std::uint64_t i = 0; i < dim.extent; ++i) next.push_back(base + i * dim.stride_bytes);
    }
    offsets = std::move(next);
  }
  std::vector<std::uint64_t> bytes;
  for (const std::uint64_t base : offsets) {
    for (std::uint64_t i = 0; i < block.run_bytes; ++i) bytes.push_back(base + i);
  }
  return bytes;
}

Bytes RandomBytes(std::mt19937_64& rng, std::uint64_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = std::byte(Draw(rng, 0, 255));
  return bytes;
}

TEST_CASE("ByteRuns walks the bytes of a block in packed order", "[transport][copy][property]") {
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const ByteBlock block = RandomBlock(rng, Draw(rng, 1, 5));
  const std::vector<std::uint64_t> offsets = Offsets(block);
  REQUIRE(block.bytes() == offsets.size());
  const std::uint64_t begin = Draw(rng, 0, offsets.size());
  const std::uint64_t end = Draw(rng, begin, offsets.size());

  std::vector<std::uint64_t> walked;
  ByteRuns runs(block, begin, end);
  while (runs.left() > 0) {
    REQUIRE(runs.run_left() > 0);
    const std::uint64_t step = Draw(rng, 1, runs.run_left());
    for (std::uint64_t i = 0; i < step; ++i) walked.push_back(runs.offset() + i);
    runs.Advance(step);
  }
  REQUIRE(walked == std::vector<std::uint64_t>(offsets.begin() + std::ptrdiff_t(begin),
                                               offsets.begin() + std::ptrdiff_t(end)));
}

TEST_CASE("ByteRuns walks runs that touch as one", "[transport][copy]") {
  const ByteBlock touching{8, 4, {{3, 100}, {5, 4}, {1, 999}}};
  const ByteRuns runs(touching, 0, touching.bytes());
  REQUIRE(runs.offset() == 8);
  REQUIRE(runs.run_left() == 20);
}

TEST_CASE("ByteRuns of an empty range has nothing left", "[transport][copy]") {
  const ByteBlock block{8, 4, {{3, 100}}};
  REQUIRE(ByteRuns(block, 12, 12).left() == 0);
  REQUIRE(ByteRuns(ByteBlock{0, 0, {}}, 0, 0).left() == 0);
  REQUIRE(ByteRuns(ByteBlock{0, 4, {{0, 4}}}, 0, 0).left() == 0);
}

TEST_CASE("CopyRuns moves exactly the bytes of the range, block to block",
          "[transport][copy][property]") {
  const int round = GENERATE(range(0, 400));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const std::uint64_t widths[] = {1, 2, 3, 4, 8, 16, 24, 32, 64, kLeastStreamedBytes + 5};
  const std::uint64_t width = widths[Draw(rng, 0, 9)];
  const CopiedFor use = Draw(rng, 0, 1) == 0 ? CopiedFor::kRead : CopiedFor::kLeft;
  const ByteBlock from = RandomBlock(rng, width * Draw(rng, 1, 3));
  const ByteBlock to = RandomBlock(rng, width);
  const std::uint64_t from_begin = Draw(rng, 0, from.bytes());
  const std::uint64_t to_begin = Draw(rng, 0, to.bytes());
  const std::uint64_t bytes =
      Draw(rng, 0, std::min(from.bytes() - from_begin, to.bytes() - to_begin));
  const Bytes source = RandomBytes(rng, EndOffset(from));
  Bytes target = RandomBytes(rng, EndOffset(to));

  Bytes expected = target;
  const std::vector<std::uint64_t> reads = Offsets(from);
  const std::vector<std::uint64_t> writes = Offsets(to);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    expected[writes[to_begin + i]] = source[reads[from_begin + i]];
  }
  CopyRuns({source, from, from_begin}, {target, to, to_begin}, bytes, use);
  REQUIRE(target == expected);
}

TEST_CASE("Gather and Scatter are inverse on any packed range", "[transport][copy][property]") {
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const ByteBlock block = RandomBlock(rng, Draw(rng, 1, 9));
  const Bytes source = RandomBytes(rng, EndOffset(block));
  const std::uint64_t begin = Draw(rng, 0, block.bytes());
  Bytes packed(Draw(rng, 0, block.bytes() - begin));
  Gather(source, block, begin, packed);

  const std::vector<std::uint64_t> offsets = Offsets(block);
  for (std::uint64_t i = 0; i < packed.size(); ++i) {
    REQUIRE(packed[i] == source[offsets[begin + i]]);
  }
  Bytes target(source.size(), std::byte{0xA5});
  Bytes expected = target;
  for (std::uint64_t i = 0; i < packed.size(); ++i) {
    expected[offsets[begin + i]] = source[offsets[begin + i]];
  }
  Scatter(packed, block, begin, target);
  REQUIRE(target == expected);
}

TEST_CASE("EndOffset is one past the last byte, and zero for an empty block",
          "[transport][copy][property]") {
  const int round = GENERATE(range(0, 50));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const ByteBlock block = RandomBlock(rng, Draw(rng, 1, 9));
  const std::vector<std::uint64_t> offsets = Offsets(block);
  REQUIRE(EndOffset(block) == *std::max_element(offsets.begin(), offsets.end()) + 1);
  REQUIRE(EndOffset(ByteBlock{7, 4, {{0, 4}}}) == 0);
  REQUIRE(EndOffset(ByteBlock{7, 0, {}}) == 0);
}

}  // namespace
}  // namespace wb
