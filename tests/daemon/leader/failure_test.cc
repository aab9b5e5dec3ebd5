#include <chrono>
#include <string>
#include <vector>

#include "planner/model/culprit.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::Text;

constexpr test::Manners kSilent{false, false, false, false};

/// engine1 with one rank (session e0) on n2.
PeerId AddEngine1(LeaderWorld& world) {
  const PeerId n2 = world.Attach("n2");
  REQUIRE(world.Join(n2, "e0", RolloutRank("engine1", 0, 1, "n2"), 1).ok());
  return n2;
}

TEST_CASE("a killed trainer fails every delivery that is not staged", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId n2 = AddEngine1(world);
  world.manners[n2].stages = false;
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  world.Accept(n2, "e0", 1);
  REQUIRE(world.NewestTo("engine0").state == "committed");
  REQUIRE(world.NewestTo("engine1").state == "moving");

  world.Say(nodes.n0, UnregisterWorker{"t1", "process ended"});
  const FinishReceive end = *world.ReceiveEnd(n2, "e0");
  REQUIRE(end.status.code() == absl::StatusCode::kUnavailable);
  REQUIRE(Text(end.status) ==
          "job gqa version 1 to engine1: policy/1 (node n0) left: process ended");
  const FinishPublish publish = *world.PublishEnd(nodes.n0, "t0");
  REQUIRE(publish.status == end.status);
  REQUIRE(publish.outcomes.at(0).status.ok());
  REQUIRE_FALSE(publish.outcomes.at(1).status.ok());
  REQUIRE(world.Newest().state == "released");
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.ok());
  REQUIRE(world.Take<CommitAttempt>(n2).empty());
}

TEST_CASE("a killed rollout fails its own group only", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId n2 = AddEngine1(world);
  nodes.PublishAll(1);
  world.Accept(nodes.n1, "r0", 1);
  world.Accept(n2, "e0", 1);
  world.Say(nodes.n1, UnregisterWorker{"r1", "process ended"});
  REQUIRE(Text(world.ReceiveEnd(nodes.n1, "r0")->status) ==
          "job gqa version 1 to engine0: engine0/1 (node n1) left: process ended");
  REQUIRE(world.ReceiveEnd(n2, "e0")->status.ok());
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.code() == absl::StatusCode::kUnavailable);
  REQUIRE(world.Newest().state == "released");
  const std::vector<VersionFailed> told = world.Take<VersionFailed>(nodes.n1);
  REQUIRE(told.size() == 1);
  REQUIRE(told.front().version == Version(1));
}

TEST_CASE("a lost daemon takes its workers with it and is not waited for", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.manners[nodes.n0].stages = false;
  world.manners[nodes.n1] = kSilent;
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  world.leader().OnPeerLost(nodes.n1, absl::UnavailableError("connection reset"));
  const FinishPublish end = *world.PublishEnd(nodes.n0, "t0");
  REQUIRE(Text(end.status) ==
          "job gqa version 1 to engine0: engine0/0 (node n1) left: daemon of node n1 lost: "
          "connection reset");
  REQUIRE(CulpritsOf(end.status) == std::vector<Culprit>{{Culprit::Reason::kGone, "engine0/0",
                                                          "engine0", "n1", "host", "", 0}});
  REQUIRE(world.Newest().state == "failed");
  REQUIRE(world.leader().Members("gqa").size() == 2);
}

TEST_CASE("a daemon lost after the decision does not undo it", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.manners[nodes.n1].commits = false;
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  REQUIRE(world.NewestTo("engine0").state == "installing");
  world.Say(nodes.n1, AttemptFailed{world.NewestTo("engine0").attempt,
                                    absl::InternalError("too late to matter")});
  world.leader().OnPeerLost(nodes.n1, absl::UnavailableError("connection reset"));
  REQUIRE(world.NewestTo("engine0").state == "committed");
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  REQUIRE(world.Take<AbortAttempt>(nodes.n0).empty());
}

TEST_CASE("who does not accept in time is named; the others go", "[control][leader]") {
  LeaderWorld world({milliseconds(3000), milliseconds(5000)});
  PairOfNodes nodes(world);
  const PeerId n2 = AddEngine1(world);
  nodes.PublishAll(1);
  world.Accept(n2, "e0", 1);
  world.Accept(nodes.n1, "r0", 1);
  world.timers.Advance(milliseconds(2900));
  REQUIRE(world.NewestTo("engine1").state == "prepared");
  REQUIRE(world.leader().Waits() ==
          std::vector<std::string>{
              "job gqa version 1: waiting for engine0/1 (node n1) to accept, 2.9 s",
              "job gqa version 1: waiting for the other groups before engine1 goes, 2.9 s"});
  world.timers.Advance(milliseconds(100));
  REQUIRE(world.NewestTo("engine1").state == "committed");
  const FinishReceive late = *world.ReceiveEnd(nodes.n1, "r0");
  REQUIRE(late.status.code() == absl::StatusCode::kDeadlineExceeded);
  REQUIRE(Text(late.status) ==
          "job gqa version 1 to engine0: not ready 3.0 s after the version was offered; waiting "
          "for engine0/1 (node n1) to accept, 3.0 s");
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status == late.status);
  REQUIRE(CulpritsOf(late.status) ==
          std::vector<Culprit>{
              {Culprit::Reason::kLate, "engine0/1", "engine0", "n1", "host", "accept", 3.0}});

  // It is offered again, from the group that holds it.
  world.Accept(nodes.n1, "r1", 1);
  world.Accept(nodes.n1, "r0", 1);
  REQUIRE(world.ReceiveEnd(nodes.n1, "r1")->status.ok());
}

TEST_CASE("a daemon that does not prepare in time is named", "[control][leader]") {
  LeaderWorld world({milliseconds(3000), milliseconds(5000)});
  PairOfNodes nodes(world);
  world.manners[nodes.n0].prepares = false;
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  world.timers.Advance(milliseconds(3000));
  REQUIRE_THAT(Text(world.ReceiveEnd(nodes.n1, "r1")->status),
               Contains("waiting for node n0 to prepare engine0, 3.0 s"));
  REQUIRE(world.Newest().state == "failed");
}

TEST_CASE("calls of a failed delivery end when every daemon has confirmed the abort",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.manners[nodes.n0] = world.manners[nodes.n1] = {true, false, false, false};
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  const AttemptId attempt = world.Take<GoAttempt>(nodes.n1).at(0).attempt;
  world.Say(nodes.n1, AttemptFailed{attempt, absl::DataLossError("checksum of chunk 3")});
  REQUIRE(world.Take<AbortAttempt>(nodes.n0).size() == 1);
  REQUIRE(world.Take<AbortAttempt>(nodes.n1).at(0).status.code() == absl::StatusCode::kDataLoss);
  world.Say(nodes.n1, AttemptAborted{attempt});
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "r0").has_value());
  REQUIRE(world.leader().Waits() ==
          std::vector<std::string>{"job gqa version 1: waiting for node n0 to confirm the abort of "
                                   "engine0, 0.0 s"});
  world.Say(nodes.n0, AttemptAborted{attempt});
  const FinishReceive end = *world.ReceiveEnd(nodes.n1, "r0");
  REQUIRE(Text(end.status) == "job gqa version 1 to engine0: node n1: checksum of chunk 3");
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status == end.status);
  for (const MemberSnapshot& member : world.leader().Members("gqa")) {
    if (member.role == Role::kRollout) REQUIRE(member.memory == MemoryState::kInvalid);
  }
}

TEST_CASE("a daemon that never confirms is waited for a bounded time, and named",
          "[control][leader]") {
  LeaderWorld world({seconds(10), milliseconds(2000)});
  PairOfNodes nodes(world);
  world.manners[nodes.n0] = {true, false, false, false};
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  world.Say(nodes.n0, UnregisterWorker{"t1", "process ended"});
  world.timers.Advance(milliseconds(1999));
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "r0").has_value());
  world.timers.Advance(milliseconds(1));
  REQUIRE_THAT(Text(world.ReceiveEnd(nodes.n1, "r0")->status),
               Contains("memory may still change: waiting for node n0 to confirm the abort"));
  REQUIRE(world.PublishEnd(nodes.n0, "t0").has_value());
}

TEST_CASE("nothing is committed after a failure, however many daemons had staged",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.manners[nodes.n0] = world.manners[nodes.n1] = {true, false, false, false};
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  const AttemptId attempt = world.NewestTo("engine0").attempt;
  world.Say(nodes.n1, AttemptStaged{attempt, {256, 0, 0}});
  world.Say(nodes.n0, AttemptFailed{attempt, absl::InternalError("lane broke")});
  world.Say(nodes.n0, AttemptStaged{attempt, {}});
  REQUIRE(world.Take<CommitAttempt>(nodes.n0).empty());
  REQUIRE(world.Take<CommitAttempt>(nodes.n1).empty());
  REQUIRE(world.Take<AbortAttempt>(nodes.n1).size() == 1);
  REQUIRE(world.NewestTo("engine0").state == "failed");
}

TEST_CASE("messages of an old attempt are dropped and counted", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  const AttemptId old = world.NewestTo("engine0").attempt;
  world.manners[nodes.n0] = world.manners[nodes.n1] = kSilent;
  nodes.PublishAll(2);
  nodes.AcceptAll(2);
  for (const ToLeader& stale : std::vector<ToLeader>{
           AttemptPrepared{old}, AttemptStaged{old, {}}, AttemptFailed{old, absl::OkStatus()},
           AttemptAborted{old}, AttemptCommitted{old}, AttemptPrepared{AttemptId(12345)}}) {
    world.Say(nodes.n0, stale);
  }
  REQUIRE(world.leader().stale_messages() == 6);
  REQUIRE(world.NewestTo("engine0").state == "waiting");
  const AttemptId present = world.NewestTo("engine0").attempt;
  world.Say(nodes.n0, AttemptStaged{present, {}});
  REQUIRE(world.leader().stale_messages() == 7);
  REQUIRE(world.NewestTo("engine0").state == "waiting");
}

TEST_CASE("trainer ranks that name different versions are all refused, by name",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Publish(nodes.n0, "t0", 3);
  world.Publish(nodes.n0, "t1", 4);
  const FinishPublish first = *world.PublishEnd(nodes.n0, "t0");
  const FinishPublish second = *world.PublishEnd(nodes.n0, "t1");
  REQUIRE(first.version == Version(3));
  REQUIRE(second.version == Version(4));
  REQUIRE(first.status.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(Text(first.status) ==
          "job gqa: trainer ranks name different versions: policy/0 version 3, policy/1 version 4");
  REQUIRE(second.status == first.status);
  REQUIRE(world.Take<VersionOffered>(nodes.n1).empty());

  nodes.PublishAll(4);
  nodes.AcceptAll(4);
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
}

TEST_CASE("a rank that publishes after its version failed hears the first reason",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Publish(nodes.n0, "t0", 3);
  world.Say(nodes.n0, GiveUpVersion{"t0", Version(3), "its deadline of 1.0 s has passed"});
  const absl::Status first = world.PublishEnd(nodes.n0, "t0")->status;
  REQUIRE(first.code() == absl::StatusCode::kDeadlineExceeded);
  REQUIRE(Text(first) ==
          "policy/0 (node n0) gave up version 3: its deadline of 1.0 s has passed; waiting for "
          "policy/1 (node n0) to publish, 0.0 s");
  world.Publish(nodes.n0, "t1", 3);
  REQUIRE(world.PublishEnd(nodes.n0, "t1")->status == first);
  // Once told, the number is spent for it as for the others.
  world.Publish(nodes.n0, "t1", 3);
  REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, "t1")->status),
               Contains("version 3 is not above 3") && Contains("it failed: policy/0"));
}

TEST_CASE("a trainer that dies while the version opens ends it for the others",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Publish(nodes.n0, "t0", 3);
  world.Accept(nodes.n1, "r0", 3);
  world.Say(nodes.n0, UnregisterWorker{"t1", "process ended"});
  REQUIRE(Text(world.PublishEnd(nodes.n0, "t0")->status) ==
          "job gqa version 3: policy/1 (node n0) left: process ended");
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("a publish without a whole engine fails after start_timeout, missing ranks named",
          "[field][case-116][control][leader]") {
  LeaderWorld world({milliseconds(2000), milliseconds(5000)});
  PairOfNodes nodes(world);
  world.Say(nodes.n1, UnregisterWorker{"r1", "closed"});
  SECTION("some are there") {
    nodes.PublishAll(1);
    world.timers.Advance(seconds(2));
    const FinishPublish end = *world.PublishEnd(nodes.n0, "t0");
    REQUIRE(end.status.code() == absl::StatusCode::kFailedPrecondition);
    REQUIRE(Text(end.status) ==
            "job gqa version 1: no rollout group is whole 2.0 s after all trainer ranks "
            "published: engine0: 1 of 2 registered: missing ranks 1");
  }
  SECTION("none is there") {
    world.Say(nodes.n1, UnregisterWorker{"r0", "closed"});
    nodes.PublishAll(1);
    world.timers.Advance(seconds(2));
    REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, "t1")->status), Contains("none is registered"));
  }
  SECTION("the caller's own deadline comes first") {
    nodes.PublishAll(1);
    world.timers.Advance(seconds(1));
    world.Say(nodes.n0, GiveUpVersion{"t0", Version(1), "its deadline of 1.0 s has passed"});
    REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, "t0")->status),
                 Contains("engine0: 1 of 2 registered: missing ranks 1"));
  }
  SECTION("whole groups go without those that are not") {
    const PeerId n2 = AddEngine1(world);
    nodes.PublishAll(1);
    REQUIRE(world.Newest().state == "opening");
    world.timers.Advance(seconds(2));
    world.Accept(n2, "e0", 1);
    REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
    world.Accept(nodes.n1, "r0", 1);
    REQUIRE(Text(world.ReceiveEnd(nodes.n1, "r0")->status) ==
            "engine0 was not whole when version 1 was offered: it starts with the next offer");
  }
}

TEST_CASE("a plan that is refused reaches every caller, and the version is not advanced",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  for (const char* session : {"t0", "t1"}) {
    world.Say(nodes.n0, UnregisterWorker{session, "closed"});
  }
  // The trainer holds rows 0..3 only, of 8.
  REQUIRE(world.Join(nodes.n0, "half", test::TrainerRank(0, 2, "n0"), 1).ok());
  world.Accept(nodes.n1, "r0", 1);
  world.Publish(nodes.n0, "half", 1);
  const FinishPublish end = *world.PublishEnd(nodes.n0, "half");
  REQUIRE(end.status.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE_THAT(Text(end.status), Contains("w") && Contains("engine0"));
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status == end.status);
  REQUIRE(world.Take<VersionOffered>(nodes.n1).empty());
  REQUIRE(world.Take<VersionFailed>(nodes.n1).at(0).status == end.status);
  REQUIRE(world.Newest().state == "failed");
  REQUIRE(world.leader().Members("gqa").at(0).held_version == Version());
  world.Accept(nodes.n1, "r1", 1);
  REQUIRE(world.ReceiveEnd(nodes.n1, "r1")->status == end.status);
}

TEST_CASE("layers that no trainer holds are named, and nothing is committed",
          "[control][leader][field][case-11]") {
  LeaderWorld world;
  const PeerId n0 = world.Attach("n0");
  const PeerId n1 = world.Attach("n1");
  const auto layer = [](int number) {
    return "model.layers." + std::to_string(number) + ".mlp.down_proj.weight";
  };
  const auto only = [](const test::JobBuilder& builder) {
    const Job job = builder.Build();
    return Registration{job.name, job.tensors, job.layouts.front()};
  };
  // 28 of 30 layers on 4 ranks, as a floor division leaves them.
  for (int rank = 0; rank < 4; ++rank) {
    test::JobBuilder builder("gqa");
    for (int own = 7 * rank; own < 7 * rank + 7; ++own) {
      builder.AddTensor(layer(own), Dtype::kBf16, {2, 2});
    }
    builder.Trainer(rank, "n0");
    for (int own = 7 * rank; own < 7 * rank + 7; ++own) builder.Holds(layer(own), {0, 0}, {2, 2});
    REQUIRE(world.Join(n0, "t" + std::to_string(rank), only(builder), 4).ok());
  }
  test::JobBuilder builder("gqa");
  for (int own = 0; own < 30; ++own) builder.AddTensor(layer(own), Dtype::kBf16, {2, 2});
  builder.Rollout("engine0", 0, "n1");
  for (int own = 0; own < 30; ++own) builder.Holds(layer(own), {0, 0}, {2, 2});
  REQUIRE(world.Join(n1, "r0", only(builder), 1, {Version(4)}).ok());

  world.Accept(n1, "r0", 5);
  for (int rank = 0; rank < 4; ++rank) world.Publish(n0, "t" + std::to_string(rank), 5);
  const absl::Status status = world.ReceiveEnd(n1, "r0")->status;
  REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
  const std::string text = Text(status);
  for (int own = 0; own < 30; ++own) {
    INFO(layer(own) << " in " << text);
    REQUIRE((text.find(layer(own)) != std::string::npos) == (own >= 28));
  }
  for (int rank = 0; rank < 4; ++rank) {
    REQUIRE(world.PublishEnd(n0, "t" + std::to_string(rank))->status == status);
  }
  REQUIRE(world.Take<PrepareAttempt>(n1).empty());
  for (const MemberSnapshot& member : world.leader().Members("gqa")) {
    if (member.role != Role::kRollout) continue;
    REQUIRE(member.held_version == Version(4));
    REQUIRE(member.memory == MemoryState::kValid);
  }
}

TEST_CASE("a rollout that gives up ends its group's delivery and names who was late",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  SECTION("before the version is offered: only its own call") {
    world.Accept(nodes.n1, "r0", 1);
    world.Say(nodes.n1, GiveUpVersion{"r0", Version(1), "its deadline of 1.0 s has passed"});
    REQUIRE_THAT(Text(world.ReceiveEnd(nodes.n1, "r0")->status),
                 Contains("waiting for the trainers to publish it"));
    nodes.PublishAll(1);
    nodes.AcceptAll(1);
    REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.ok());
  }
  SECTION("while its peers are late") {
    nodes.PublishAll(1);
    world.Accept(nodes.n1, "r0", 1);
    world.Say(nodes.n1, GiveUpVersion{"r0", Version(1), "its deadline of 1.0 s has passed"});
    REQUIRE_THAT(Text(world.ReceiveEnd(nodes.n1, "r0")->status),
                 Contains("waiting for engine0/1 (node n1) to accept"));
    REQUIRE(world.PublishEnd(nodes.n0, "t1")->status.code() == absl::StatusCode::kDeadlineExceeded);
  }
  SECTION("once commit is decided: not at all") {
    world.manners[nodes.n1].commits = false;
    nodes.PublishAll(1);
    nodes.AcceptAll(1);
    world.Say(nodes.n1, GiveUpVersion{"r0", Version(1), "its deadline of 1.0 s has passed"});
    REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "r0").has_value());
    REQUIRE(world.NewestTo("engine0").state == "installing");
  }
}

TEST_CASE("a trainer that gives up fails what is not staged", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  nodes.PublishAll(1);
  world.Accept(nodes.n1, "r0", 1);
  world.Say(nodes.n0, GiveUpVersion{"t1", Version(1), "its deadline of 1.0 s has passed"});
  REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, "t1")->status),
               Contains("policy/1 (node n0) gave up version 1") &&
                   Contains("waiting for engine0/1 (node n1) to accept"));
  REQUIRE(world.PublishEnd(nodes.n0, "t0").has_value());
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.code() == absl::StatusCode::kDeadlineExceeded);
}

TEST_CASE("calls that cannot be are refused with the reason", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Publish(nodes.n1, "r0", 1);
  REQUIRE_THAT(Text(world.PublishEnd(nodes.n1, "r0")->status), Contains("is a rollout"));
  world.Accept(nodes.n0, "t0", 1);
  REQUIRE_THAT(Text(world.ReceiveEnd(nodes.n0, "t0")->status), Contains("is a trainer"));
  world.Publish(nodes.n0, "t0", 0);
  REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, "t0")->status), Contains("version 0"));
  world.Publish(nodes.n0, "t0", 5);
  world.Publish(nodes.n0, "t0", 5);
  REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, "t0")->status), Contains("already publishing"));
  world.Publish(nodes.n0, "t1", 5);
  nodes.AcceptAll(5);
  world.ReceiveEnd(nodes.n1, "r0");
  world.Accept(nodes.n1, "r0", 5);
  REQUIRE(Text(world.ReceiveEnd(nodes.n1, "r0")->status) ==
          "version 5 to engine0 is committed already");
  world.Accept(nodes.n1, "r0", 2);
  REQUIRE(Text(world.ReceiveEnd(nodes.n1, "r0")->status) ==
          "version 2 is not on offer to engine0: the newest of job gqa is 5");
}

TEST_CASE("a rank that waits for a number that can no longer come is told", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Accept(nodes.n1, "r0", 2);
  world.Accept(nodes.n1, "r1", 9);
  nodes.PublishAll(5);
  REQUIRE_THAT(Text(world.ReceiveEnd(nodes.n1, "r0")->status), Contains("version 2 is not on"));
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "r1").has_value());
}

TEST_CASE("a version opens behind one that is still offered, and is offered after it",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.manners[nodes.n0].aborts = false;
  world.manners[nodes.n0].stages = false;
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  // A trainer is replaced while the abort of version 1 is still being confirmed.
  world.Say(nodes.n0, UnregisterWorker{"t1", "process ended"});
  REQUIRE(world.Join(nodes.n0, "t2", test::TrainerRank(1, 2, "n0"), 2).ok());
  world.Publish(nodes.n0, "t2", 2);
  REQUIRE(world.Newest().state == "opening");
  REQUIRE(world.leader().Versions("gqa", 0).at(1).state == "offered");
  world.Say(nodes.n0,
            AttemptAborted{world.leader().Versions("gqa", 0).at(1).deliveries.at(0).attempt});
  REQUIRE_FALSE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  world.Publish(nodes.n0, "t0", 2);
  REQUIRE(world.Newest().state == "offered");
}

}  // namespace
}  // namespace wb
