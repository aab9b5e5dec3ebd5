// What happens while the leader makes a plan, or its parts, off its loop.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::Text;

/// The pair, with all ranks of version 1 at their calls, up to what is made off the loop.
struct HeldWorld : PairOfNodes {
  explicit HeldWorld(LeaderWorld& leader_world) : PairOfNodes(leader_world) {
    world.work.hold = true;
    PublishAll(1);
  }
  bool Offered() { return !world.Take<VersionOffered>(n1).empty(); }
  /// Up to the parts, which are held.
  void MakePlan() {
    world.work.DoOne();
    REQUIRE(Offered());
    AcceptAll(1);
    REQUIRE(world.work.held() == 1);
  }
};

TEST_CASE("while a plan is made workers are heard, and status says what is waited for",
          "[control][leader]") {
  LeaderWorld world;
  HeldWorld nodes(world);
  world.timers.Advance(milliseconds(300));
  REQUIRE_FALSE(nodes.Offered());
  REQUIRE(world.leader().Waits() ==
          std::vector<std::string>{
              "job gqa version 1: waiting for the leader to make the plan, 0.3 s"});
  REQUIRE(world.Join(nodes.n1, "x0", RolloutRank("engine1", 0, 2, "n1"), 2).ok());
  REQUIRE(world.work.held() == 1);
}

TEST_CASE("a plan is made once for all who ask while it is made, and offered when it is there",
          "[control][leader]") {
  LeaderWorld world;
  HeldWorld nodes(world);
  world.timers.Advance(seconds(11));  // timeouts.start is over: it is asked for again
  REQUIRE(world.work.held() == 1);
  REQUIRE_FALSE(nodes.Offered());
  world.work.DoOne();
  REQUIRE(nodes.Offered());
  REQUIRE(world.work.held() == 0);
}

TEST_CASE("a group that becomes whole while a plan is made has a part in the next one",
          "[control][leader]") {
  LeaderWorld world;
  HeldWorld nodes(world);
  REQUIRE(world.Join(nodes.n1, "x0", RolloutRank("engine1", 0, 1, "n1"), 1).ok());
  world.work.DoOne();
  REQUIRE_FALSE(nodes.Offered());
  REQUIRE(world.work.held() == 1);
  world.work.DoOne();
  REQUIRE(world.Take<VersionOffered>(nodes.n1).size() == 2);
}

TEST_CASE("a trainer that leaves while the plan is made fails the version at once",
          "[control][leader]") {
  LeaderWorld world;
  HeldWorld nodes(world);
  world.Say(nodes.n0, UnregisterWorker{"t1", "killed"});
  const std::optional<FinishPublish> end = world.PublishEnd(nodes.n0, "t0");
  REQUIRE(end.has_value());
  REQUIRE(end->status.code() == absl::StatusCode::kUnavailable);
  world.work.DoOne();
  REQUIRE_FALSE(nodes.Offered());
  REQUIRE(world.work.held() == 0);
}

TEST_CASE("the plan of a job whose members have all left is dropped", "[control][leader]") {
  LeaderWorld world;
  HeldWorld nodes(world);
  for (const char* session : {"t0", "t1"}) world.Say(nodes.n0, UnregisterWorker{session, "gone"});
  for (const char* session : {"r0", "r1"}) world.Say(nodes.n1, UnregisterWorker{session, "gone"});
  world.work.DoOne();
  REQUIRE_FALSE(nodes.Offered());
  REQUIRE(world.leader().Waits().empty());
}

TEST_CASE("daemons are asked to prepare when their parts are made", "[control][leader]") {
  LeaderWorld world;
  HeldWorld nodes(world);
  nodes.MakePlan();
  REQUIRE(world.Take<PrepareAttempt>(nodes.n0).empty());
  REQUIRE(world.NewestTo("engine0").state == "waiting");
  REQUIRE(world.leader().Waits() ==
          std::vector<std::string>{
              "job gqa version 1: waiting for the leader to make the plan for node n0, 0.0 s",
              "job gqa version 1: waiting for the leader to make the plan for node n1, 0.0 s"});
  world.work.DoOne();
  REQUIRE(world.Take<PrepareAttempt>(nodes.n0).size() == 1);
  REQUIRE(world.Take<PrepareAttempt>(nodes.n1).size() == 1);
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
}

TEST_CASE("parts that are made of a delivery that has failed are sent to nobody",
          "[control][leader]") {
  LeaderWorld world;
  HeldWorld nodes(world);
  nodes.MakePlan();
  world.Say(nodes.n1, GiveUpVersion{"r0", Version(1), "its time is over"});
  // Nobody knows of the attempt: nothing has to be awaited.
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "r1")->status.ok());
  REQUIRE_FALSE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  world.work.DoOne();
  for (const PeerId peer : {nodes.n0, nodes.n1}) {
    REQUIRE(world.Take<PrepareAttempt>(peer).empty());
    REQUIRE(world.Take<AbortAttempt>(peer).empty());
  }
  REQUIRE(world.leader().stale_messages() == 0);
}

TEST_CASE(
    "who holds its part is asked at once, and alone hears of an abort before others' are made",
    "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  for (const PeerId peer : {nodes.n0, nodes.n1}) world.Take<PrepareAttempt>(peer);
  // The engine comes back: the trainers' daemon holds its part of the same plan.
  for (const char* session : {"r0", "r1"}) world.Say(nodes.n1, UnregisterWorker{session, "", true});
  for (int rank = 0; rank < 2; ++rank) {
    const SessionId session = "again" + std::to_string(rank);
    REQUIRE(world.Join(nodes.n1, session, RolloutRank("engine0", rank, 2, "n1"), 2).ok());
  }
  nodes.PublishAll(2);
  world.manners[nodes.n0].aborts = false;
  world.work.hold = true;
  for (const char* session : {"again0", "again1"}) world.Accept(nodes.n1, session, 2);
  const std::vector<PrepareAttempt> asked = world.Take<PrepareAttempt>(nodes.n0);
  REQUIRE(asked.size() == 1);
  REQUIRE_FALSE(asked.front().plan.has_value());
  REQUIRE(world.Take<PrepareAttempt>(nodes.n1).empty());

  world.Say(nodes.n1, GiveUpVersion{"again0", Version(2), "its time is over"});
  REQUIRE(world.Take<AbortAttempt>(nodes.n0).size() == 1);
  REQUIRE(world.Take<AbortAttempt>(nodes.n1).empty());
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "again1").has_value());
  world.Say(nodes.n0, AttemptAborted{asked.front().attempt});
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "again1")->status.ok());
  world.work.DoOne();
  REQUIRE(world.Take<PrepareAttempt>(nodes.n1).empty());
}

TEST_CASE("a late plan that is made when a new version opens is dropped", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  world.Take<VersionOffered>(nodes.n1);
  world.work.hold = true;
  REQUIRE(world.Join(nodes.n1, "x0", RolloutRank("engine1", 0, 1, "n1"), 1).ok());
  REQUIRE(world.work.held() == 1);
  nodes.PublishAll(2);
  world.work.DoOne();
  REQUIRE(world.Take<VersionOffered>(nodes.n1).empty());
  world.work.DoOne();
  for (const VersionOffered& offer : world.Take<VersionOffered>(nodes.n1)) {
    REQUIRE(offer.version == Version(2));
  }
}

}  // namespace
}  // namespace wb
