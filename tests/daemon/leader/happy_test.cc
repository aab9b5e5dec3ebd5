#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using std::chrono::milliseconds;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::TrainerRank;

TEST_CASE("a version passes from offer to commit by the daemons' words, step by step",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.manners[nodes.n0] = world.manners[nodes.n1] = {false, false, false, false};

  world.Publish(nodes.n0, "t0", 1);
  REQUIRE(world.Take<VersionOffered>(nodes.n1).empty());
  world.timers.Advance(milliseconds(100));
  world.Publish(nodes.n0, "t1", 1);
  const std::vector<VersionOffered> offers = world.Take<VersionOffered>(nodes.n1);
  REQUIRE(offers.size() == 1);
  REQUIRE(offers.front().group == "engine0");
  REQUIRE(offers.front().version == Version(1));
  REQUIRE(world.Take<VersionOffered>(nodes.n0).empty());

  world.Accept(nodes.n1, "r0", 1);
  REQUIRE(world.Take<PrepareAttempt>(nodes.n1).empty());
  world.Accept(nodes.n1, "r1", 1);
  const std::vector<PrepareAttempt> to_n0 = world.Take<PrepareAttempt>(nodes.n0);
  const std::vector<PrepareAttempt> to_n1 = world.Take<PrepareAttempt>(nodes.n1);
  REQUIRE(to_n0.size() == 1);
  REQUIRE(to_n1.size() == 1);
  const PrepareAttempt& prepare = to_n0.front();
  REQUIRE(prepare.attempt == to_n1.front().attempt);
  REQUIRE(prepare.plan.has_value());
  REQUIRE(prepare.plan->moves.size() == 4);
  REQUIRE(prepare.fingerprint == prepare.plan->fingerprint);
  const WorkerGeneration generation{Incarnation(5), Epoch(3)};
  REQUIRE(prepare.workers == std::map<std::string, WorkerGeneration>{{"policy/0", generation},
                                                                     {"policy/1", generation}});
  REQUIRE(prepare.peers.size() == 1);
  REQUIRE(prepare.peers.front().node == "n1");
  REQUIRE(prepare.peers.front().data_address == "address of n1");

  const AttemptId attempt = prepare.attempt;
  world.Say(nodes.n0, AttemptPrepared{attempt});
  REQUIRE(world.Take<GoAttempt>(nodes.n0).empty());
  world.Say(nodes.n1, AttemptPrepared{attempt});
  REQUIRE(world.Take<GoAttempt>(nodes.n0).size() == 1);
  REQUIRE(world.Take<GoAttempt>(nodes.n1).size() == 1);
  REQUIRE(world.NewestTo("engine0").state == "moving");

  world.timers.Advance(milliseconds(40));
  world.Say(nodes.n0, AttemptStaged{attempt, {}});
  REQUIRE(world.Take<CommitAttempt>(nodes.n0).empty());
  world.Say(nodes.n1, AttemptStaged{attempt, {250, 0, 6}});
  REQUIRE(world.Take<CommitAttempt>(nodes.n0).size() == 1);
  REQUIRE(world.Take<CommitAttempt>(nodes.n1).size() == 1);
  // The sources are free as soon as commit is decided; the ranks wait for the commit itself.
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  REQUIRE(world.PublishEnd(nodes.n0, "t1")->outcomes.size() == 1);
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "r0").has_value());

  world.timers.Advance(milliseconds(10));
  world.Say(nodes.n0, AttemptCommitted{attempt});
  world.Say(nodes.n1, AttemptCommitted{attempt});
  const std::optional<FinishReceive> end = world.ReceiveEnd(nodes.n1, "r0");
  REQUIRE(end->status.ok());
  REQUIRE(end->move_seconds == Approx(0.05));
  REQUIRE(world.ReceiveEnd(nodes.n1, "r1")->status.ok());

  const VersionSnapshot version = world.Newest();
  REQUIRE(version.state == "released");
  REQUIRE(version.status.ok());
  REQUIRE(version.end_to_end_ms == Approx(150));
  REQUIRE(version.average_stall_ms == Approx((140 + 40 + 50 + 50) / 4.0));
  REQUIRE(version.bound_bytes == 128);
  const DeliverySnapshot delivery = world.NewestTo("engine0");
  REQUIRE(delivery.state == "committed");
  REQUIRE(delivery.bytes_planned == 256);
  REQUIRE(delivery.bytes == BytesByPath{250, 0, 6});
  REQUIRE(delivery.seconds == Approx(0.05));
  REQUIRE(world.leader().Waits().empty());
  REQUIRE(world.leader().stale_messages() == 0);
}

TEST_CASE("a trainer that publishes a snapshot waits for that alone; the update begins with it",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Say(nodes.n0, PublishVersion{"t0", Version(1), {}, 0.03});
  world.timers.Advance(milliseconds(100));
  world.Say(nodes.n0,
            PublishVersion{"t1", Version(1), {}, 0.15});  // began 50 ms before t0 was done
  world.Accept(nodes.n1, "r0", 1);
  world.timers.Advance(milliseconds(40));
  world.Accept(nodes.n1, "r1", 1);
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.ok());
  const VersionSnapshot version = world.Newest();
  REQUIRE(version.average_stall_ms == Approx((30 + 150 + 40 + 0) / 4.0));
  REQUIRE(version.end_to_end_ms == Approx(50 + 140));
}

TEST_CASE("a commit shows in what the members hold", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(4);
  nodes.AcceptAll(4);
  for (const MemberSnapshot& member : world.leader().Members("gqa")) {
    INFO(member.name.ToString());
    REQUIRE(member.held_version == Version(4));
    REQUIRE(member.memory == MemoryState::kValid);
    REQUIRE(member.bytes == 128);
  }
  REQUIRE(world.leader().Members("").size() == 4);
  REQUIRE(world.leader().Members("other").empty());
}

TEST_CASE("the second version of the same workers travels without its plan", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  const PrepareAttempt first = world.Take<PrepareAttempt>(nodes.n1).at(0);
  nodes.PublishAll(2);
  nodes.AcceptAll(2);
  const PrepareAttempt second = world.Take<PrepareAttempt>(nodes.n1).at(0);
  REQUIRE(first.plan.has_value());
  REQUIRE_FALSE(second.plan.has_value());
  REQUIRE(second.fingerprint == first.fingerprint);
  REQUIRE(second.attempt != first.attempt);
  REQUIRE(world.Newest().state == "released");
  REQUIRE(world.leader().Versions("gqa", 0).at(1).deliveries.at(0).state == "retired");
}

TEST_CASE("a daemon on a new stream is sent the plan again", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  world.Take<PrepareAttempt>(nodes.n1);
  world.leader().OnPeerLost(nodes.n1, absl::UnavailableError("cut"));
  nodes.n1 = world.Attach("n1");
  for (int rank = 0; rank < 2; ++rank) {
    const Registration registration = RolloutRank("engine0", rank, 2, "n1");
    const SessionId session = "r" + std::to_string(rank);
    REQUIRE(world.Join(nodes.n1, session, registration, 2, {Version(1)}).ok());
  }
  nodes.PublishAll(2);
  nodes.AcceptAll(2);
  REQUIRE(world.Take<PrepareAttempt>(nodes.n1).at(0).plan.has_value());
  REQUIRE(world.Newest().status.ok());
}

TEST_CASE("ranks that accept before the version is offered are served when it is",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.AcceptAll(1);
  REQUIRE(world.leader().Waits().size() == 2);
  nodes.PublishAll(1);
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.ok());
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
}

TEST_CASE("a rank that wants nothing commits with its group", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId n2 = world.Attach("n2");
  Registration empty = RolloutRank("engine1", 1, 2, "n2");
  empty.tensors.clear();
  empty.layout.params = {};
  empty.layout.buffers = {};
  empty.layout.pieces = {};
  REQUIRE(world.Join(nodes.n1, "e0", RolloutRank("engine1", 0, 1, "n1"), 2).ok());
  REQUIRE(world.Join(n2, "e1", empty, 2).ok());
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  world.Accept(nodes.n1, "e0", 1);
  world.Accept(n2, "e1", 1);
  REQUIRE(world.Take<PrepareAttempt>(n2).at(0).plan->moves.empty());
  REQUIRE(world.ReceiveEnd(n2, "e1")->status.ok());
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->outcomes.size() == 2);
}

TEST_CASE("a publication waits for groups that are half there", "[control][leader]") {
  LeaderWorld world;
  const PeerId n0 = world.Attach("n0");
  const PeerId n1 = world.Attach("n1");
  REQUIRE(world.Join(n0, "t0", TrainerRank(0, 1, "n0"), 1).ok());
  REQUIRE(world.Join(n1, "r0", RolloutRank("engine0", 0, 2, "n1"), 2).ok());
  world.Publish(n0, "t0", 1);
  REQUIRE(world.Newest().state == "opening");
  REQUIRE(world.leader().Waits() ==
          std::vector<std::string>{"job gqa version 1: waiting for engine0: 1 of 2 registered: "
                                   "missing ranks 1, 0.0 s"});
  REQUIRE(world.Join(n1, "r1", RolloutRank("engine0", 1, 2, "n1"), 2).ok());
  REQUIRE(world.Newest().state == "offered");
}

TEST_CASE("a job that never published has no versions", "[control][leader][field][case-92]") {
  LeaderWorld world;
  REQUIRE(world.leader().Versions("gqa", 0).empty());
  PairOfNodes nodes(world);
  REQUIRE(world.leader().Versions("gqa", 0).empty());
  REQUIRE(world.leader().Versions("", 5).empty());
  REQUIRE(world.leader().Members("gqa").at(0).held_version == Version());
}

TEST_CASE("the first version may be 501; the same or a lower one is refused",
          "[control][leader][field][case-91]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(501);
  nodes.AcceptAll(501);
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  REQUIRE(world.PublishEnd(nodes.n0, "t1")->status.ok());
  for (const std::uint64_t version : {400U, 501U}) {
    world.Publish(nodes.n0, "t0", version);
    const absl::Status status = world.PublishEnd(nodes.n0, "t0")->status;
    REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
    REQUIRE(status.message() ==
            "version " + std::to_string(version) + " is not above 501 of job gqa");
  }
  REQUIRE(world.Newest().version == Version(501));
  nodes.PublishAll(502);
  nodes.AcceptAll(502);
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
}

TEST_CASE("the newest 128 versions of a job are kept", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  for (std::uint64_t version = 1; version <= 140; ++version) {
    nodes.PublishAll(version);
    nodes.AcceptAll(version);
  }
  REQUIRE(world.leader().Versions("gqa", 0).size() == 128);
  REQUIRE(world.leader().Versions("gqa", 3).size() == 3);
  REQUIRE(world.Newest().version == Version(140));
}

}  // namespace
}  // namespace wb
