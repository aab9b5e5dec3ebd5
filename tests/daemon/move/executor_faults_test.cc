// Executors over a fabric that does to payloads what networks do.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/daemon/move/move_pair.h"
#include "tests/daemon/move/move_world.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using Catch::Matchers::Contains;

constexpr std::uint64_t kChunks = 10;
const Blocks kRun{{0, Run(0, kChunks* kTestChunk)}};  // straight from and to regions
const Blocks kRows{{0, {0, 10, {{kChunks * kTestChunk / 10, 10}}}}};  // through slots

/// The slots of a node, as the executor keeps them among its regions.
std::span<std::byte> SlotsOf(const MoveNode& node) {
  return node.regions.ResolveWritable({RegionId(std::uint64_t{1} << 63), 0, 8 * kTestChunk})
      .value();
}

bool AllAre(std::span<const std::byte> memory, std::byte value) {
  return std::all_of(memory.begin(), memory.end(),
                     [value](std::byte byte) { return byte == value; });
}

void AbortAndAwait(MoveWorld& world, MoveNode& node) {
  node.executor->Abort(AttemptId(1));
  world.DriveUntil([&node] { return Has(node.events.ended, AttemptId(1)); });
}

TEST_CASE("chunks that come twice, or in another order, land once each", "[move]") {
  Pair pair(64'000, TestOptions(), AnyPlaces());
  const Blocks& to = GENERATE(as<Blocks>(), kRun, kRows);
  pair.t.fabric->InjectSends({.twice = {1, 7, 8, 12}, .late = {0, 5, 8, 14, 20}, .fail = {}});
  pair.RequireDelivered(kRun, to);
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.r.executor->Counters().refused_chunks == 3);  // 8 was late, and then not sent again
}

TEST_CASE("chunks of an aborted attempt that come late are counted, and write nothing", "[move]") {
  Pair pair(64'000);
  const Blocks& to = GENERATE(as<Blocks>(), kRun, kRows);
  pair.r.fabric->HoldWhere([](std::uint64_t, EndpointId) { return true; });
  const std::vector<NodeWork> all = pair.Work(1, kRun, to);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntil([&] { return pair.r.fabric->payloads() == 4; });  // a window
  AbortAndAwait(pair.world, pair.r);
  pair.Reset();
  pair.r.fabric->Release();
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.r.executor->Counters().late_chunks == 4);
  REQUIRE(AllAre(pair.target, kSentinel));
  REQUIRE_THAT(std::string(FailureOf(pair.t, AttemptId(1)).message()),
               Contains("of stream 7 to r was not sent"));
  AbortAndAwait(pair.world, pair.t);
  Deliver(pair.world, pair.Work(2, kRun, to));
}

TEST_CASE("after an abort amid slow payloads the slots are not written either",
          "[move][ucx][field][case-74]") {
  const std::string transport = GENERATE("loopback", "tcp", "shm");
  Pair pair(64'000, TestOptions(), {}, transport);
  const std::vector<NodeWork> all = pair.Work(1, kRun, kRows);
  PrepareAll(pair.world, all);
  // The first are given their slots and do not end, the others are not even seen.
  pair.r.fabric->HoldWhere([](std::uint64_t payload, EndpointId) { return payload >= 3; });
  pair.r.fabric->Withhold(true);
  GoAll(all);
  pair.world.DriveUntil([&] { return pair.r.fabric->withheld() >= 1; });
  pair.r.executor->Abort(AttemptId(1));
  pair.r.fabric->Withhold(false);
  pair.world.DriveUntil([&] { return Has(pair.r.events.ended, AttemptId(1)); });
  const std::span<std::byte> slots = SlotsOf(pair.r);
  std::fill(slots.begin(), slots.end(), std::byte{0xEE});
  pair.Reset();
  pair.r.fabric->Release();
  pair.world.DriveUntilQuiet();
  AbortAndAwait(pair.world, pair.t);
  pair.world.DriveUntilQuiet();
  REQUIRE(AllAre(slots, std::byte{0xEE}));
  REQUIRE(AllAre(pair.target, kSentinel));

  Deliver(pair.world, pair.Work(2, kRun, kRows));
  const std::vector<std::byte> image = pair.Expected(kRun, kRows);
  REQUIRE(std::equal(pair.target.begin(), pair.target.end(), image.begin()));
}

TEST_CASE("of ten chunks one that cannot be sent fails the attempt by its name",
          "[move][field][case-89]") {
  Pair pair(64'000);
  const auto [fail, named] = GENERATE(table<std::set<std::uint64_t>, std::string>(
      {{{2}, "chunk 2 of stream 7 to r was not sent: payload 2"},
       {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "chunk 0 of stream 7 to r was not sent: payload 0"}}));
  pair.t.fabric->InjectSends({.twice = {}, .late = {}, .fail = fail});
  const std::vector<NodeWork> all = pair.Work(1, kRun, kRun);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntil([&] { return !FailureOf(pair.t, AttemptId(1)).ok(); });
  REQUIRE_THAT(std::string(FailureOf(pair.t, AttemptId(1)).message()), Contains(named));
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.r.events.staged.empty());
  AbortAndAwait(pair.world, pair.t);
  AbortAndAwait(pair.world, pair.r);

  pair.t.fabric->InjectSends({});
  pair.Reset();
  Deliver(pair.world, pair.Work(2, kRun, kRun));
  const std::vector<std::byte> image = pair.Expected(kRun, kRun);
  REQUIRE(std::equal(pair.target.begin(), pair.target.end(), image.begin()));
}

}  // namespace
}  // namespace wb::test
