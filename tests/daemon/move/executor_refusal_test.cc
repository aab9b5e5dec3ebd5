#include <algorithm>
#include <vector>

#include "daemon/move/chunk_header.h"
#include "tests/daemon/move/move_pair.h"
#include "tests/daemon/move/move_world.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"
#include "transport/copy/checksum.h"

namespace wb::test {
namespace {

using Catch::Matchers::Contains;

/// A mover that says what it likes: a bare fabric that sends whatever headers the test makes.
class Stranger {
 public:
  explicit Stranger(MoveWorld& world)
      : world_(world), fabric_(LoopbackFabric::Create(world.network(), regions_).value()) {
    Region region = Region::AllocateArena(kTestChunk).value();
    payload_ = region.host_memory().value();
    std::fill(payload_.begin(), payload_.end(), std::byte{0x5C});
    REQUIRE(regions_.Add(RegionId(1), std::move(region)).ok());
  }

  /// What the receiver answered.
  absl::Status Send(MoveNode& to, std::span<const std::byte> header, std::uint64_t bytes) {
    if (endpoint_ == EndpointId()) endpoint_ = fabric_->Connect(to.fabric->address()).value();
    REQUIRE(fabric_->Send(endpoint_, header, {RegionId(1), 0, bytes}, ++tag_).ok());
    std::vector<FabricEvent> events;
    world_.DriveUntil([&] {
      fabric_->Progress(events);
      return !events.empty();
    });
    return events.front().status;
  }
  absl::Status Send(MoveNode& to, const ChunkHeader& header) {
    return Send(to, EncodeHeader(header), std::min(header.bytes, kTestChunk));
  }

  /// The header of a chunk as the receiver of `pair` expects it from "t".
  ChunkHeader Expected(const Pair& pair, std::uint64_t attempt, std::uint32_t chunk) const {
    ChunkHeader header;
    header.attempt = AttemptId(attempt);
    header.sender = pair.t.incarnation;
    header.stream = kStream;
    header.chunk = chunk;
    header.bytes = kTestChunk;
    header.has_checksum = true;
    header.checksum = Checksum(payload_);
    return header;
  }

 private:
  MoveWorld& world_;
  RegionTable regions_;
  std::span<std::byte> payload_;
  std::unique_ptr<LoopbackFabric> fabric_;
  EndpointId endpoint_;
  std::uint64_t tag_ = 0;
};

/// A receiver that moves attempt 1, of five chunks, from a sender that does not.
struct Expecting : Pair {
  Expecting() : Pair(64'000), stranger(world) {
    const Blocks blocks{{0, Run(0, 5 * kTestChunk)}};
    PrepareAll(world, Work(1, blocks, blocks));
    r.executor->Go(AttemptId(1));
  }
  bool untouched() const {
    return std::all_of(target.begin(), target.end(),
                       [](std::byte byte) { return byte == kSentinel; });
  }
  MoverCounters counters() const { return r.executor->Counters(); }

  Stranger stranger;
};

TEST_CASE("a chunk as expected is taken, the same again is not", "[move]") {
  Expecting pair;
  const ChunkHeader header = pair.stranger.Expected(pair, 1, 2);
  REQUIRE(pair.stranger.Send(pair.r, header).ok());
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.target[2 * kTestChunk] == std::byte{0x5C});
  REQUIRE(pair.stranger.Send(pair.r, header).code() == absl::StatusCode::kAlreadyExists);
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.counters().refused_chunks == 1);
  REQUIRE(FailureOf(pair.r, AttemptId(1)).ok());
}

TEST_CASE("a chunk of an attempt that is not known is refused as late", "[move]") {
  Expecting pair;
  REQUIRE(pair.stranger.Send(pair.r, pair.stranger.Expected(pair, 2, 0)).code() ==
          absl::StatusCode::kNotFound);
  REQUIRE(pair.counters().late_chunks == 1);
  REQUIRE(pair.untouched());
  REQUIRE(FailureOf(pair.r, AttemptId(1)).ok());
}

TEST_CASE("a chunk of an attempt that has ended is refused as late", "[move]") {
  Expecting pair;
  pair.r.executor->Abort(AttemptId(1));
  pair.world.DriveUntil([&] { return Has(pair.r.events.ended, AttemptId(1)); });
  REQUIRE(pair.stranger.Send(pair.r, pair.stranger.Expected(pair, 1, 0)).code() ==
          absl::StatusCode::kNotFound);
  REQUIRE(pair.counters().late_chunks == 1);
  REQUIRE(pair.untouched());
}

TEST_CASE("a chunk from another incarnation than the peer's is refused and costs nothing",
          "[move]") {
  Expecting pair;
  ChunkHeader header = pair.stranger.Expected(pair, 1, 0);
  header.sender = Incarnation(header.sender.value() + 1);
  REQUIRE(pair.stranger.Send(pair.r, header).code() == absl::StatusCode::kPermissionDenied);
  header.stream = 99;
  REQUIRE(pair.stranger.Send(pair.r, header).code() == absl::StatusCode::kPermissionDenied);
  REQUIRE(pair.counters().refused_chunks == 2);
  REQUIRE(pair.untouched());
  REQUIRE(FailureOf(pair.r, AttemptId(1)).ok());
}

TEST_CASE("a chunk of the peer that does not fit the plan fails the attempt by name", "[move]") {
  Expecting pair;
  ChunkHeader header = pair.stranger.Expected(pair, 1, 0);
  std::string names;
  SECTION("no such chunk") {
    header.chunk = 5;
    names = "chunk 5 of stream 7, want less than 5";
  }
  SECTION("no such stream") {
    header.stream = 8;
    names = "no stream 8";
  }
  SECTION("fewer bytes than the chunk has") {
    header.bytes = kTestChunk - 1;
    names = "chunk 0 of stream 7 says 4095 bytes and has 4095, want 4096";
  }
  SECTION("more bytes than are announced") {
    header.bytes = kTestChunk + 1;
    names = "says 4097 bytes and has 4096, want 4096";
  }
  SECTION("no checksum where integrity is asked for") {
    header.has_checksum = false;
    names = "no checksum";
  }
  REQUIRE_FALSE(pair.stranger.Send(pair.r, header).ok());
  pair.world.DriveUntilQuiet();
  REQUIRE_THAT(std::string(FailureOf(pair.r, AttemptId(1)).message()), Contains(names));
  REQUIRE(pair.counters().refused_chunks == 1);
  REQUIRE(pair.untouched());
}

TEST_CASE("damaged bytes fail the attempt and name chunk, stream and node", "[move]") {
  Expecting pair;
  ChunkHeader header = pair.stranger.Expected(pair, 1, 3);
  header.checksum ^= 1;
  REQUIRE(pair.stranger.Send(pair.r, header).ok());  // it arrived; nobody said it was delivered
  pair.world.DriveUntil([&] { return !FailureOf(pair.r, AttemptId(1)).ok(); });
  const absl::Status failure = FailureOf(pair.r, AttemptId(1));
  REQUIRE(failure.code() == absl::StatusCode::kDataLoss);
  REQUIRE_THAT(std::string(failure.message()), Contains("chunk 3 of stream 7 from t"));
  REQUIRE(pair.r.events.staged.empty());
}

TEST_CASE("garbage for a header is refused and counted, and harms nothing", "[move]") {
  Expecting pair;
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(0);
  constexpr std::uint64_t kRounds = 200;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    std::vector<std::byte> garbage(Draw(rng, 0, 128));
    FillRandom(rng, garbage);
    REQUIRE(pair.stranger.Send(pair.r, garbage, Draw(rng, 0, kTestChunk)).code() ==
            absl::StatusCode::kInvalidArgument);
  }
  REQUIRE(pair.counters().refused_chunks == kRounds);
  REQUIRE(pair.untouched());
  REQUIRE(FailureOf(pair.r, AttemptId(1)).ok());
}

TEST_CASE("a hello opens a lane, one with a payload is refused", "[move]") {
  Expecting pair;
  ChunkHeader hello;
  hello.kind = MessageKind::kHello;
  REQUIRE(pair.stranger.Send(pair.r, EncodeHeader(hello), 0).ok());
  REQUIRE(pair.stranger.Send(pair.r, EncodeHeader(hello), 8).code() ==
          absl::StatusCode::kInvalidArgument);
}

TEST_CASE("random well-formed headers never land outside what is expected", "[move][property]") {
  Expecting pair;
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(1);
  for (int round = 0; round < 200; ++round) {
    ChunkHeader header;
    header.attempt = AttemptId(Draw(rng, 0, 2));
    header.sender = Incarnation(rng());  // never the peer's
    header.stream = static_cast<std::uint32_t>(Draw(rng, 6, 8));
    header.chunk = static_cast<std::uint32_t>(Draw(rng, 0, 6));
    header.bytes = Draw(rng, 0, kTestChunk);
    header.has_checksum = Draw(rng, 0, 1) == 1;
    REQUIRE_FALSE(pair.stranger.Send(pair.r, header).ok());
  }
  REQUIRE(pair.untouched());
}

}  // namespace
}  // namespace wb::test
