#include <algorithm>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "planner/base/fd_handle.h"
#include "planner/model/culprit.h"
#include "tests/daemon/move/move_pair.h"
#include "tests/daemon/move/move_world.h"
#include "tests/support/catch.h"
#include "tests/support/sealed_memory.h"

namespace wb::test {
namespace {

using Catch::Matchers::Contains;

const Blocks kRuns{{0, Run(0, 50'000)}};
const Blocks kRows{{0, {0, 10, {{5000, 12}}}}};

/// Aborts attempt 1 on both and waits for its end.
void AbortBoth(Pair& pair) {
  pair.t.executor->Abort(AttemptId(1));
  pair.r.executor->Abort(AttemptId(1));
  pair.world.DriveUntil([&pair] {
    return Has(pair.t.events.ended, AttemptId(1)) && Has(pair.r.events.ended, AttemptId(1));
  });
}

void RequireRemovable(MoveNode& node) {
  bool removed = false;
  node.executor->RemoveRegion(kRegion, [&removed] { removed = true; });
  REQUIRE(removed);
}

std::string FailureText(const MoveNode& node) {
  return std::string(FailureOf(node, AttemptId(1)).message());
}

/// The failure of attempt 1 names the daemon of `peer` as the one that is gone.
void RequireGone(const MoveNode& node, const std::string& peer) {
  const std::vector<Culprit> culprits = CulpritsOf(FailureOf(node, AttemptId(1)));
  REQUIRE(culprits.size() == 1);
  REQUIRE(culprits.front().reason == Culprit::Reason::kGone);
  REQUIRE(culprits.front().node == peer);
  REQUIRE(culprits.front().stage == "move");
}

TEST_CASE("a payload damaged on its way fails the attempt with its chunk's name", "[move]") {
  Pair pair(64'000, TestOptions(), AnyPlaces());
  const Blocks& to = GENERATE(as<Blocks>(), kRuns, kRows);
  pair.r.fabric->Inject({{5}, {}});
  const std::vector<NodeWork> all = pair.Work(1, kRuns, to);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntil([&] { return !FailureOf(pair.r, AttemptId(1)).ok(); });
  REQUIRE(FailureOf(pair.r, AttemptId(1)).code() == absl::StatusCode::kDataLoss);
  REQUIRE_THAT(FailureText(pair.r), Contains("of stream 7 from t"));
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.r.events.staged.empty());
  AbortBoth(pair);
  REQUIRE(pair.r.events.failed.size() == 1);  // the first reason only

  pair.r.fabric->Inject({});
  Deliver(pair.world, pair.Work(2, kRuns, to));
  const std::vector<std::byte> image = pair.Expected(kRuns, to);
  pair.Reset();
  Deliver(pair.world, pair.Work(3, kRuns, to));
  REQUIRE(std::equal(pair.target.begin(), pair.target.end(), image.begin()));
}

TEST_CASE("after an abort in the middle nothing is written any more", "[move]") {
  Pair pair(64'000, TestOptions(), AnyPlaces());
  const Blocks& to = GENERATE(as<Blocks>(), kRuns, kRows);
  pair.r.fabric->Inject({{}, {6}});  // chunk 6 stays on its way: it never completes
  const std::vector<NodeWork> all = pair.Work(1, kRuns, to);
  PrepareAll(pair.world, all);
  GoAll(all);
  SECTION("before anything could move") {}
  SECTION("with chunks in flight") {
    pair.world.DriveUntil([&] { return pair.r.fabric->payloads() >= 2; });
  }
  SECTION("when only one chunk is missing") {
    pair.world.DriveUntilQuiet();
  }
  AbortBoth(pair);
  pair.Reset();
  pair.world.DriveUntilQuiet();
  REQUIRE(std::all_of(pair.target.begin(), pair.target.end(),
                      [](std::byte byte) { return byte == kSentinel; }));
  REQUIRE(pair.r.events.staged.empty());
  REQUIRE(pair.r.events.failed.empty());

  // The next version goes over new lanes, all slots are free again.
  pair.r.fabric->Inject({});
  Deliver(pair.world, pair.Work(2, kRuns, to));
  REQUIRE(pair.t.fabric->connects() == 2);
  const std::vector<std::byte> image = pair.Expected(kRuns, to);
  REQUIRE(std::equal(pair.target.begin(), pair.target.end(), image.begin()));
  RequireRemovable(pair.t);
  RequireRemovable(pair.r);
}

TEST_CASE("an abort ends only when every operation has", "[move]") {
  Pair pair(64'000);
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRows);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntil([&] { return pair.r.fabric->payloads() >= 2; });
  pair.r.fabric->Withhold(true);
  pair.world.DriveUntil([&] { return pair.r.fabric->withheld() >= 2; });
  pair.r.executor->Abort(AttemptId(1));
  bool removed = false;
  pair.r.executor->RemoveRegion(kRegion, [&removed] { removed = true; });
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.r.events.ended.empty());  // the fabric has not told the end of two receives
  REQUIRE_FALSE(removed);
  pair.r.fabric->Withhold(false);
  pair.world.DriveUntil([&] { return Has(pair.r.events.ended, AttemptId(1)); });
  REQUIRE(removed);
  REQUIRE(pair.r.regions.size() == 1);  // the arena
}

TEST_CASE("aborting one receiver fails its sender, who names it", "[move]") {
  Pair pair(64'000);
  pair.r.fabric->Inject({{}, {6}});
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntilQuiet();
  pair.r.executor->Abort(AttemptId(1));
  pair.world.DriveUntil([&] { return !FailureOf(pair.t, AttemptId(1)).ok(); });
  REQUIRE_THAT(FailureText(pair.t), Contains("r"));
  pair.t.executor->Abort(AttemptId(1));
  pair.world.DriveUntil([&] { return Has(pair.t.events.ended, AttemptId(1)); });
}

TEST_CASE("a peer that goes away fails the attempt by its name", "[move]") {
  Pair pair(64'000);
  pair.r.fabric->Inject({{}, {6}});
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRows);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntilQuiet();
  SECTION("the receiver") {
    pair.world.Remove(pair.r);
    pair.world.DriveUntil([&] { return !FailureOf(pair.t, AttemptId(1)).ok(); });
    REQUIRE_THAT(FailureText(pair.t), Contains(" r"));
    RequireGone(pair.t, "r");
    pair.t.executor->Abort(AttemptId(1));
    pair.world.DriveUntil([&] { return Has(pair.t.events.ended, AttemptId(1)); });
    RequireRemovable(pair.t);
  }
  SECTION("the sender") {
    pair.world.Remove(pair.t);
    pair.world.DriveUntil([&] { return !FailureOf(pair.r, AttemptId(1)).ok(); });
    REQUIRE_THAT(FailureText(pair.r), Contains("connection from t failed"));
    RequireGone(pair.r, "t");
    pair.r.executor->Abort(AttemptId(1));
    pair.world.DriveUntil([&] { return Has(pair.r.events.ended, AttemptId(1)); });
    RequireRemovable(pair.r);
  }
}

TEST_CASE("an attempt can be aborted while its lanes are being opened", "[move]") {
  Pair pair(64'000);
  pair.t.fabric->Withhold(true);  // it does not hear that its hello has gone through
  pair.t.executor->Prepare(pair.Work(1, kRuns, kRuns)[0].work);
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.t.events.prepared.empty());
  pair.t.executor->Abort(AttemptId(1));
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.t.events.ended.empty());
  pair.t.fabric->Withhold(false);
  pair.world.DriveUntil([&] { return Has(pair.t.events.ended, AttemptId(1)); });
  REQUIRE(pair.t.events.prepared.empty());
  Deliver(pair.world, pair.Work(2, kRuns, kRuns));
  REQUIRE(pair.t.fabric->connects() == 2);
}

TEST_CASE("a prepared attempt fails when the lane it would use does", "[move]") {
  Pair pair(64'000);
  PrepareAll(pair.world, pair.Work(1, kRuns, kRuns));
  pair.world.Remove(pair.r);
  pair.world.DriveUntil([&] { return !FailureOf(pair.t, AttemptId(1)).ok(); });
  REQUIRE_THAT(FailureText(pair.t), Contains("connection to r failed"));
}

TEST_CASE("an idle lane that fails is not used again", "[move]") {
  Pair pair(64'000);
  Deliver(pair.world, pair.Work(1, kRuns, kRuns));
  std::vector<NodeWork> all = pair.Work(2, kRuns, kRuns);
  pair.world.Remove(pair.r);
  pair.world.DriveUntilQuiet();
  MoveNode& anew = pair.world.Add("r");  // the same name and incarnation
  const std::span<std::byte> target = anew.AddMemory(kRegion, 64'000);
  all[0].work.peers[0] = anew.Address();
  all[1].node = &anew;
  Deliver(pair.world, all);
  REQUIRE(std::equal(target.begin(), target.begin() + 50'000, pair.source.begin()));
}

TEST_CASE("a broken fabric fails every attempt with its own words", "[move]") {
  Pair pair(64'000);
  std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  for (NodeWork& each : pair.Work(2, kRuns, kRows)) all.push_back(each);
  PrepareAll(pair.world, all);
  pair.r.executor->FailAll(absl::InternalError("the device is gone"));
  REQUIRE_THAT(FailureText(pair.r), Contains("the device is gone"));
  REQUIRE(pair.r.events.failed.size() == 2);
}

TEST_CASE("a peer that goes away after all has landed fails nothing", "[move]") {
  Pair pair(64'000);
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRows);
  PrepareAll(pair.world, all);
  GoAll(all);
  AwaitStaged(pair.world, all);
  pair.world.DriveUntilQuiet();
  pair.world.Remove(pair.t);
  pair.world.DriveUntilQuiet();
  REQUIRE(FailureOf(pair.r, AttemptId(1)).ok());
  pair.r.executor->Finish(AttemptId(1));
  pair.world.DriveUntil([&] { return Has(pair.r.events.ended, AttemptId(1)); });
}

TEST_CASE("a fabric that cannot send fails the attempt with the chunk's name", "[move]") {
  Pair pair(64'000);
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  PrepareAll(pair.world, all);
  pair.t.fabric->FailSends(absl::ResourceExhaustedError("no more of it"));
  GoAll(all);
  pair.world.DriveUntil([&] { return !FailureOf(pair.t, AttemptId(1)).ok(); });
  REQUIRE_THAT(FailureText(pair.t),
               Contains("chunk 0 of stream 7 to r") && Contains("no more of it"));
  AbortBoth(pair);
}

TEST_CASE("finish waits for chunks that still go out", "[move]") {
  Pair pair(64'000);
  const Blocks few{{0, Run(0, 3 * kTestChunk)}};  // less than a window
  const std::vector<NodeWork> all = pair.Work(1, few, few);
  PrepareAll(pair.world, all);
  pair.t.fabric->Withhold(true);  // from now on, it does not hear that its chunks have left
  GoAll(all);
  AwaitStaged(pair.world, all);
  pair.t.executor->Finish(AttemptId(1));
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.t.events.ended.empty());
  pair.t.fabric->Withhold(false);
  pair.world.DriveUntil([&] { return Has(pair.t.events.ended, AttemptId(1)); });
  REQUIRE(pair.t.events.failed.empty());
  FinishAll(pair.world, {all[1]});
}

TEST_CASE("finish does not cut chunks that have yet to go out", "[move]") {
  Pair pair(64'000);
  const std::vector<NodeWork> all = pair.Work(1, kRows, kRuns);
  PrepareAll(pair.world, all);
  GoAll(all);
  REQUIRE(pair.t.events.staged.size() == 1);  // it lands nothing, and has sent nothing yet
  pair.t.executor->Finish(AttemptId(1));
  AwaitStaged(pair.world, {all[1]});
  const std::vector<std::byte> image = pair.Expected(kRows, kRuns);
  REQUIRE(std::equal(pair.target.begin(), pair.target.end(), image.begin()));
  pair.world.DriveUntil([&] { return Has(pair.t.events.ended, AttemptId(1)); });
  REQUIRE(pair.t.events.failed.empty());
}

TEST_CASE("a peer that goes away after the decision does not keep an attempt", "[move]") {
  Pair pair(64'000);
  pair.r.fabric->Inject({{}, {1}});
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.t.executor->Finish(AttemptId(1));
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.t.events.ended.empty());
  pair.world.Remove(pair.r);
  pair.world.DriveUntil([&] { return Has(pair.t.events.ended, AttemptId(1)); });
  REQUIRE(pair.t.events.failed.empty());  // nobody would act on it any more
}

TEST_CASE("preparing again an attempt that failed repeats why", "[move]") {
  Pair pair(64'000);
  std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  all[0].work.peers.clear();
  pair.t.executor->Prepare(all[0].work);
  pair.t.executor->Prepare(all[0].work);
  REQUIRE(pair.t.events.failed.size() == 2);
  REQUIRE(pair.t.events.failed[0].second == pair.t.events.failed[1].second);
}

TEST_CASE("an attempt finished before it has staged is cut", "[move]") {
  Pair pair(64'000);
  pair.r.fabric->Inject({{}, {6}});
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntilQuiet();
  FinishAll(pair.world, {all[1]});
  pair.Reset();
  pair.world.DriveUntilQuiet();
  REQUIRE(pair.target[0] == kSentinel);
  RequireRemovable(pair.r);
}

TEST_CASE("aborting twice, or what is not known, is answered once each", "[move]") {
  Pair pair(64'000);
  pair.t.executor->Abort(AttemptId(9));
  REQUIRE(pair.t.events.ended == std::vector<AttemptId>{AttemptId(9)});
  pair.t.executor->Finish(AttemptId(8));
  REQUIRE(pair.t.events.ended.size() == 2);

  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRows);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.t.executor->Abort(AttemptId(1));
  pair.t.executor->Abort(AttemptId(1));
  pair.t.executor->Finish(AttemptId(1));
  AbortBoth(pair);
  REQUIRE(pair.t.events.ended.size() == 3);
}

TEST_CASE("aborting all ends all", "[move]") {
  Pair pair(64'000);
  pair.r.fabric->Inject({{}, {2, 3}});
  std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  for (NodeWork& each : pair.Work(2, kRuns, kRows)) all.push_back(each);
  PrepareAll(pair.world, all);
  GoAll(all);
  pair.world.DriveUntil([&] { return pair.r.fabric->payloads() >= 4; });
  pair.t.executor->AbortAll();
  pair.r.executor->AbortAll();
  pair.world.DriveUntil([&] { return pair.t.executor->idle() && pair.r.executor->idle(); });
  REQUIRE(pair.r.events.ended.size() == 2);
}

TEST_CASE("work that does not fit is refused by name when it is prepared", "[move]") {
  Pair pair(64'000);
  std::vector<NodeWork> all = pair.Work(1, kRuns, kRows);
  AttemptWork& sends = all[0].work;
  AttemptWork& receives = all[1].work;
  std::string names;
  NodeWork* refused = nullptr;
  SECTION("a region that is not there") {
    sends.out[0].source.regions[0] = RegionId(77);
    names = "77";
    refused = all.data();
  }
  SECTION("a stream past the region's end") {
    receives.in[0].destination.offsets[0] = 10'000;
    names = "worker 0 to worker 0, buffer 0";
    refused = &all[1];
  }
  SECTION("a stream that comes in twice") {
    receives.in.push_back(receives.in[0]);
    names = "stream 7 comes in twice";
    refused = &all[1];
  }
  SECTION("a peer without an address") {
    sends.peers.clear();
    names = "no address of peer r";
    refused = all.data();
  }
  SECTION("a peer with an address that is none") {
    sends.peers[0].data_address = "nowhere";
    names = "connecting to r";
    refused = all.data();
  }
  SECTION("a peer that is not there") {
    sends.peers[0].data_address = "loopback:999";
    names = "r";
    refused = all.data();
  }
  SECTION("a stream to ourselves") {
    sends.out[0].peer_node = "t";
    names = "want a local copy";
    refused = all.data();
  }
  SECTION("a packed chunk larger than a slot") {
    receives.in[0].destination = pair.r.Bind(MakeStream(kRows, kTestChunk + 1), kRegion);
    names = "chunk 0 of 4097 bytes, want at most 4096";
    refused = &all[1];
  }
  SECTION("a local copy with different chunks at its ends") {
    sends.copies.push_back({pair.t.Bind(MakeStream(kRuns, kTestChunk), kRegion),
                            pair.t.Bind(MakeStream(kRuns, kTestChunk - 1), kRegion)});
    names = "want the same chunks";
    refused = all.data();
  }
  MoveNode& node = *refused->node;
  node.executor->Prepare(refused->work);
  pair.world.DriveUntil([&] { return !FailureOf(node, AttemptId(1)).ok(); });
  REQUIRE_THAT(FailureText(node), Contains(names));
  REQUIRE(node.events.prepared.empty());
  node.executor->Go(AttemptId(1));  // crosses the failure on its way; does nothing
  pair.world.DriveUntilQuiet();
  node.executor->Abort(AttemptId(1));
  pair.world.DriveUntil([&] { return Has(node.events.ended, AttemptId(1)); });
  RequireRemovable(node);
}

TEST_CASE("memory of devices that no copier here reaches is refused by name", "[move]") {
  constexpr RegionId kThird{3};
  FakeDevice stranger(DeviceId(7));
  Pair pair(64'000);
  pair.t.AddMemory(kOther, 64'000, Where::kDevice);
  pair.t.executor->AddRegion(kThird, stranger.Open(stranger.Allocate(64'000)));
  AttemptWork work = pair.Work(1, kRuns, kRuns)[0].work;
  BoundStream& source = work.out[0].source;
  std::string names;
  SECTION("a device without a copier") {
    source.regions[0] = kThird;
    names = "memory of device 7, which has no copier here";
  }
  SECTION("a copy from one device to another") {
    work.out.clear();
    work.copies.push_back({pair.t.Bind(MakeStream(kRuns, kTestChunk), kOther),
                           pair.t.Bind(MakeStream(kRuns, kTestChunk), kThird)});
    names = "from device 0 to device 7";
  }
  SECTION("two devices in one stream") {
    source = {MakeStream({{0, Run(0, 10)}, {1, Run(0, 10)}}, kTestChunk), {kOther, kThird}, {0, 0}};
    names = "buffer 1: memory of device 7 beside memory of device 0";
  }
  pair.t.executor->Prepare(work);
  REQUIRE_THAT(FailureText(pair.t), Contains(names));
}

TEST_CASE("a large chunk in one run needs no slot to fit in", "[move]") {
  Pair pair(64'000);
  std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  all[0].work.out[0].source = pair.t.Bind(MakeStream(kRuns, 50'000), kRegion);
  all[1].work.in[0].destination = pair.r.Bind(MakeStream(kRuns, 50'000), kRegion);
  Deliver(pair.world, all);
  REQUIRE(pair.r.fabric->payloads() == 1);
}

TEST_CASE("memory that may only be read is no destination", "[move]") {
  Pair pair(64'000);
  const SealedMemory memory(64'000);
  pair.r.executor->AddRegion(kOther, memory.Open(RegionAccess::kReadOnly));
  std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  all[1].work.in[0].destination.regions[0] = kOther;
  pair.r.executor->Prepare(all[1].work);
  REQUIRE(FailureOf(pair.r, AttemptId(1)).code() == absl::StatusCode::kPermissionDenied);
}

TEST_CASE("a region that is being removed takes no new attempt", "[move]") {
  Pair pair(64'000);
  const std::vector<NodeWork> all = pair.Work(1, kRuns, kRuns);
  PrepareAll(pair.world, all);
  bool removed = false;
  pair.r.executor->RemoveRegion(kRegion, [&removed] { removed = true; });
  REQUIRE_FALSE(removed);
  pair.r.executor->Prepare(pair.Work(2, kRuns, kRuns)[1].work);
  REQUIRE(FailureOf(pair.r, AttemptId(2)).code() == absl::StatusCode::kFailedPrecondition);
  GoAll(all);  // the attempt that has it already goes on
  AwaitStaged(pair.world, all);
  REQUIRE(std::equal(pair.target.begin(), pair.target.begin() + 50'000, pair.source.begin()));
  FinishAll(pair.world, all);
  REQUIRE(removed);
}

TEST_CASE("a peer that has started anew is connected to anew", "[move]") {
  Pair pair(64'000);
  Deliver(pair.world, pair.Work(1, kRuns, kRuns));
  std::vector<NodeWork> all = pair.Work(2, kRuns, kRuns);
  all[0].work.peers[0].incarnation = Incarnation(4711);
  Deliver(pair.world, all);
  REQUIRE(pair.t.fabric->connects() == 2);
}

TEST_CASE("aborts at random moments leave nothing behind", "[move][property]") {
  const int round = GENERATE(range(0, 30));
  INFO("WB_TEST_SEED=" << RunSeed() << " round " << round);
  std::mt19937_64 rng = TestRng(round);
  Pair pair(64'000);
  const Blocks& to = Draw(rng, 0, 1) == 0 ? kRuns : kRows;
  const std::vector<NodeWork> all = pair.Work(1, kRuns, to);
  PrepareAll(pair.world, all);
  GoAll(all);
  for (std::uint64_t steps = Draw(rng, 0, 40); steps > 0; --steps) {
    (Draw(rng, 0, 1) == 0 ? pair.t : pair.r).executor->Progress();
  }
  pair.r.executor->Abort(AttemptId(1));
  pair.world.DriveUntil([&] { return Has(pair.r.events.ended, AttemptId(1)); });
  pair.Reset();  // the sender has not aborted yet
  pair.world.DriveUntilQuiet();
  REQUIRE(std::all_of(pair.target.begin(), pair.target.end(),
                      [](std::byte byte) { return byte == kSentinel; }));
  AbortBoth(pair);
  Deliver(pair.world, pair.Work(2, kRuns, to));
  const std::vector<std::byte> image = pair.Expected(kRuns, to);
  REQUIRE(std::equal(pair.target.begin(), pair.target.end(), image.begin()));
}

}  // namespace
}  // namespace wb::test
