#include "daemon/move/checked_stream.h"

#include <limits>

#include "tests/daemon/move/stream_maker.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

constexpr RegionId kRegion{1};
constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

/// One region of 1000 bytes that may be written.
struct Memory {
  Memory() { REQUIRE(regions.Add(kRegion, Region::AllocateArena(1000).value()).ok()); }

  absl::Status Check(LocalStream stream, StreamEnd end = StreamEnd::kDestination) const {
    return CheckedStream::Create({std::move(stream), {kRegion}, {0}}, regions, end).status();
  }
  absl::Status CheckBlock(const ByteBlock& block, std::uint64_t begin, std::uint64_t end) const {
    LocalStream stream;
    stream.bytes = end - begin;
    stream.chunks.push_back({stream.bytes, {{0, block, begin, end}}, {}});
    return Check(std::move(stream));
  }

  RegionTable regions;
};

TEST_CASE("a stream inside its region is accepted to the last byte", "[move]") {
  const Memory memory;
  REQUIRE(memory.CheckBlock(Run(0, 1000), 0, 1000).ok());
  REQUIRE(memory.CheckBlock({10, 10, {{99, 10}}}, 0, 990).ok());
  REQUIRE(memory.Check(LocalStream{}).ok());
}

TEST_CASE("a stream that leaves its region by a byte is refused by name", "[move]") {
  const Memory memory;
  REQUIRE(memory.CheckBlock(Run(1, 1000), 0, 1000).code() == absl::StatusCode::kOutOfRange);
  REQUIRE(memory.CheckBlock({11, 10, {{99, 10}}}, 0, 990).code() == absl::StatusCode::kOutOfRange);
  BoundStream bound{MakeStream({{0, Run(0, 1000)}}, 100), {kRegion}, {1}};
  const absl::Status status =
      CheckedStream::Create(bound, memory.regions, StreamEnd::kSource).status();
  REQUIRE(status.code() == absl::StatusCode::kOutOfRange);
  REQUIRE_THAT(std::string(status.message()), Catch::Matchers::Contains("buffer 0"));
}

TEST_CASE("sizes that do not fit 64 bits are refused, not wrapped", "[move]") {
  const Memory memory;
  REQUIRE_FALSE(memory.CheckBlock({kHuge, 10, {}}, 0, 10).ok());
  REQUIRE_FALSE(memory.CheckBlock({0, 10, {{kHuge, 1}}}, 0, 10).ok());
  REQUIRE_FALSE(memory.CheckBlock({0, 10, {{3, kHuge / 2 + 1}}}, 0, 10).ok());
  BoundStream bound{MakeStream({{0, Run(0, 10)}}, 100), {kRegion}, {kHuge - 5}};
  REQUIRE_FALSE(CheckedStream::Create(bound, memory.regions, StreamEnd::kSource).ok());
}

TEST_CASE("a stream that contradicts itself is refused", "[move]") {
  const Memory memory;
  const ByteBlock nine{
      0, 1, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}};
  REQUIRE_FALSE(memory.CheckBlock(nine, 0, 1).ok());
  REQUIRE_FALSE(memory.CheckBlock({0, 10, {{0, 10}}}, 0, 10).ok());
  REQUIRE_FALSE(memory.CheckBlock(Run(0, 10), 0, 11).ok());
  REQUIRE_FALSE(memory.CheckBlock(Run(0, 10), 5, 5).ok());

  LocalStream good = MakeStream({{0, Run(0, 300)}}, {{50, {0, Run(500, 100)}}}, 100);
  REQUIRE(memory.Check(good).ok());
  LocalStream bytes = good;
  bytes.bytes += 1;
  REQUIRE_FALSE(memory.Check(bytes).ok());
  LocalStream chunk = good;
  chunk.chunks[1].bytes += 1;
  REQUIRE_FALSE(memory.Check(chunk).ok());
  LocalStream buffer = good;
  buffer.chunks[2].parts[0].buffer = 1;
  REQUIRE_FALSE(memory.Check(buffer).ok());
  LocalStream extra = good;
  extra.chunks[0].extra[0].at = 51;  // 50 bytes from there leave the chunk
  REQUIRE_FALSE(memory.Check(extra).ok());
  LocalStream landing = good;
  landing.chunks[1].extra[0].part.block.offset = 951;
  REQUIRE_FALSE(memory.Check(landing).ok());
}

TEST_CASE("an unknown region is refused, and so is one offset too few", "[move]") {
  const Memory memory;
  const LocalStream stream = MakeStream({{0, Run(0, 10)}}, 100);
  REQUIRE(CheckedStream::Create({stream, {RegionId(9)}, {0}}, memory.regions, StreamEnd::kSource)
              .status()
              .code() == absl::StatusCode::kNotFound);
  REQUIRE_FALSE(
      CheckedStream::Create({stream, {kRegion}, {}}, memory.regions, StreamEnd::kSource).ok());
}

TEST_CASE("a chunk inside one long row is direct, across two rows it is not", "[move]") {
  const Memory memory;
  const LocalStream stream = MakeStream({{0, {5, 300, {{3, 310}}}}}, 150);
  const CheckedStream rows =
      CheckedStream::Create({stream, {kRegion}, {0}}, memory.regions, StreamEnd::kSource).value();
  REQUIRE(rows.chunks() == 6);
  REQUIRE(rows.direct(3));
  REQUIRE(rows.Ref(3) == MemoryRef{kRegion, 5 + 310 + 150, 150});
  const CheckedStream across =
      CheckedStream::Create({MakeStream({{0, {5, 300, {{3, 310}}}}}, 200), {kRegion}, {0}},
                            memory.regions, StreamEnd::kSource)
          .value();
  REQUIRE(across.direct(0));
  REQUIRE_FALSE(across.direct(1));
}

}  // namespace
}  // namespace wb::test
