#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/leader/registrations.h"
#include "daemon/state/members.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::Text;
using test::TrainerRank;

TEST_CASE("a rank that is taken is refused, both sessions named", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const absl::Status status = world.Join(nodes.n1, "again", RolloutRank("engine0", 1, 2, "n1"), 2);
  REQUIRE(status.code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(Text(status) ==
          "rank engine0/1 is taken by session r1 on node n1, which is registered since 0.0 s; "
          "session again on node n1 is refused");
  REQUIRE(world.leader().Members("gqa").size() == 4);
}

/// The leader's answers to a newcomer on n0 for a rank that r1 on n1 has.
struct RankOfAnother {
  LeaderWorld world;
  PairOfNodes nodes{world};

  RankOfAnother() {
    world.Take<WorkerRegistered>(nodes.n0);
    const Registration registration = RolloutRank("engine0", 1, 2, "n0");
    RegisterWorker call;
    call.session = "new";
    call.incarnation = Incarnation(77);
    call.world_size = 2;
    call.epoch = Epoch(1);
    call.registration = std::make_shared<const Registration>(registration);
    world.timers.Advance(std::chrono::seconds(3));
    world.Say(nodes.n0, std::move(call));
    REQUIRE(world.Take<Heartbeat>(nodes.n1).size() == 1);
    REQUIRE(Answers().empty());
  }
  std::vector<WorkerRegistered> Answers() { return world.Take<WorkerRegistered>(nodes.n0); }
};

TEST_CASE("a rank that another daemon vouches for is refused", "[control][leader]") {
  RankOfAnother rank;
  rank.world.Say(rank.nodes.n1, Heartbeat{});
  const auto answers = rank.Answers();
  REQUIRE(answers.size() == 1);
  REQUIRE(Text(answers[0].status) ==
          "rank engine0/1 is taken by session r1 on node n1, which is registered since 3.0 s; "
          "session new on node n0 is refused");
  REQUIRE(rank.world.timers.pending() == 0);
}

TEST_CASE("a rank whose session its daemon ends when asked is given at once", "[control][leader]") {
  RankOfAnother rank;
  rank.world.Say(rank.nodes.n1, UnregisterWorker{"r1", "has ended"});
  rank.world.Say(rank.nodes.n1, Heartbeat{});
  REQUIRE(rank.Answers().at(0).status.ok());
}

TEST_CASE("a rank of a daemon that does not answer is replaced, and its session is over",
          "[control][leader][field][case-115]") {
  RankOfAnother rank;
  LeaderWorld& world = rank.world;
  world.manners[rank.nodes.n1].stages = false;
  rank.nodes.PublishAll(1);
  world.Accept(rank.nodes.n1, "r0", 1);
  world.Accept(rank.nodes.n1, "r1", 1);
  world.Take<WorkerRegistered>(rank.nodes.n1);
  world.timers.Advance(std::chrono::seconds(1));
  REQUIRE(rank.Answers().at(0).status.ok());
  const auto told = world.Take<WorkerRegistered>(rank.nodes.n1);
  REQUIRE(told.size() == 1);
  REQUIRE(told[0].session == "r1");
  REQUIRE_THAT(Text(told[0].status), Contains("replaced by session new on node n0"));
  // What was in flight for the old one is cancelled, and it has no more to say.
  REQUIRE(world.NewestTo("engine0").state == "failed");
  REQUIRE_THAT(Text(world.NewestTo("engine0").status), Contains("engine0/1 (node n1) left"));
  const std::uint64_t stale = world.leader().stale_messages();
  world.Accept(rank.nodes.n1, "r1", 2);
  world.Say(rank.nodes.n1, UnregisterWorker{"r1", "late"});
  REQUIRE(world.leader().stale_messages() == stale + 2);
  REQUIRE(world.leader().Members("gqa").size() == 4);
}

TEST_CASE("a newcomer that does not wait for a vouching is forgotten", "[control][leader]") {
  RankOfAnother rank;
  SECTION("it gives up") {
    rank.world.Say(rank.nodes.n0, UnregisterWorker{"new", "deadline"});
  }
  SECTION("its daemon is lost") {
    rank.world.leader().OnPeerLost(rank.nodes.n0, absl::UnavailableError("reset"));
  }
  rank.world.timers.Advance(std::chrono::seconds(1));
  for (const MemberSnapshot& member : rank.world.leader().Members("gqa")) {
    REQUIRE(member.session != "new");
  }
  REQUIRE(rank.Answers().empty());
}

TEST_CASE("a newcomer gets its rank when the daemon that had it is lost", "[control][leader]") {
  RankOfAnother rank;
  rank.world.leader().OnPeerLost(rank.nodes.n1, absl::UnavailableError("reset"));
  REQUIRE(rank.Answers().at(0).status.ok());
}

TEST_CASE("a rank whose session has ended is free at once", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Say(nodes.n1, UnregisterWorker{"r1", "connection closed"});
  REQUIRE(world.leader().Members("gqa").size() == 3);
  REQUIRE(world.Join(nodes.n1, "again", RolloutRank("engine0", 1, 2, "n1"), 2).ok());
  nodes.PublishAll(1);
  world.Accept(nodes.n1, "r0", 1);
  world.Accept(nodes.n1, "again", 1);
  REQUIRE(world.ReceiveEnd(nodes.n1, "again")->status.ok());
}

TEST_CASE("what does not fit a job is refused by name and leaves no trace", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const auto refused = [&](const Registration& registration, int world_size) {
    const absl::Status status = world.Join(nodes.n0, "new", registration, world_size);
    REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
    REQUIRE(world.leader().Members("gqa").size() == 4);
    return Text(status);
  };

  SECTION("another world_size than the group's") {
    REQUIRE(refused(RolloutRank("engine0", 2, 4, "n0"), 4) ==
            "engine0/2 says world_size 4, the other ranks of its group say 2");
  }
  SECTION("a rank beyond the world_size") {
    REQUIRE(refused(RolloutRank("engine1", 2, 4, "n0"), 2) == "engine1/2: rank is 2, want 0..1");
  }
  SECTION("a world_size of none, or beyond all bounds") {
    REQUIRE(refused(RolloutRank("engine1", 0, 1, "n0"), 0) ==
            "engine1/0: world_size is 0, want 1..65536");
    REQUIRE(refused(RolloutRank("engine1", 0, 1, "n0"), 65537) ==
            "engine1/0: world_size is 65537, want 1..65536");
  }
  SECTION("another role than the group's") {
    Registration registration = TrainerRank(0, 1, "n0");
    registration.layout.name = {"engine0", 1};
    world.Say(nodes.n1, UnregisterWorker{"r1", "closed"});
    const absl::Status status = world.Join(nodes.n0, "new", registration, 2);
    REQUIRE(Text(status) == "engine0/1 registers as TRAINER, its group is ROLLOUT");
    REQUIRE(world.leader().Members("gqa").size() == 3);
  }
  SECTION("a second trainer group") {
    Registration registration = TrainerRank(0, 1, "n0");
    registration.layout.name.group = "critic";
    REQUIRE(refused(registration, 1) ==
            "critic/0 would be of a second trainer group: job gqa already has trainer group "
            "policy; want one");
  }
  SECTION("a tensor declared otherwise") {
    test::JobBuilder builder("gqa");
    builder.AddTensor("w", Dtype::kBf16, {8, 4}).Rollout("engine1", 0, "n0");
    builder.Holds("w", {0, 0}, {8, 4});
    const Job job = builder.Build();
    REQUIRE(refused({job.name, job.tensors, job.layouts.front()}, 1) ==
            "tensor w is declared as BF16 [8,4] by engine1/0 and as FP32 [8,8] by policy/0");
  }
  SECTION("a node that is not the daemon's") {
    REQUIRE(refused(RolloutRank("engine1", 0, 1, "elsewhere"), 1) ==
            "engine1/0 says node elsewhere, its daemon is of node n0");
  }
}

TEST_CASE("a tensor may be declared anew once all who declared it have left", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  test::JobBuilder builder("gqa");
  builder.AddTensor("w", Dtype::kBf16, {8, 8}).Rollout("engine1", 0, "n0");
  builder.Holds("w", {0, 0}, {8, 8});
  const Job job = builder.Build();
  const Registration other{job.name, job.tensors, job.layouts.front()};
  REQUIRE_FALSE(world.Join(nodes.n0, "new", other, 1).ok());
  for (const char* session : {"t0", "t1"}) {
    world.Say(nodes.n0, UnregisterWorker{session, "closed"});
  }
  const absl::Status status = world.Join(nodes.n0, "new", other, 1);
  REQUIRE_THAT(Text(status), Contains("by engine0/0"));
  for (const char* session : {"r0", "r1"}) {
    world.Say(nodes.n1, UnregisterWorker{session, "closed"});
  }
  REQUIRE(world.Join(nodes.n0, "new", other, 1).ok());
}

TEST_CASE("a refused worker does not bring a job into being", "[control][leader]") {
  LeaderWorld world;
  const PeerId n0 = world.Attach("n0");
  REQUIRE_FALSE(world.Join(n0, "new", TrainerRank(3, 4, "n0"), 2).ok());
  REQUIRE(world.leader().Members("").empty());
}

TEST_CASE("jobs do not see each other", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  Registration other = TrainerRank(0, 1, "n0");
  other.job = "second";
  REQUIRE(world.Join(nodes.n0, "s0", other, 1).ok());
  REQUIRE(world.leader().Members("second").size() == 1);
  world.Publish(nodes.n0, "s0", 9);
  REQUIRE(world.leader().Versions("gqa", 0).empty());
  REQUIRE(world.leader().Versions("", 0).size() == 1);
}

TEST_CASE("one job too many is refused with the number, until a job has no members",
          "[control][leader]") {
  LeaderWorld world;
  const PeerId n0 = world.Attach("n0");
  Registration trainer = TrainerRank(0, 1, "n0");
  const auto join = [&](std::size_t job) {
    trainer.job = "job" + std::to_string(job);
    return world.Join(n0, "s" + std::to_string(job), trainer, 1);
  };
  for (std::size_t job = 0; job < kMaxJobs; ++job) REQUIRE(join(job).ok());
  const absl::Status refused = join(kMaxJobs);
  REQUIRE(refused.code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(Text(refused) == "the leader has 1024 jobs, at most 1024");
  world.Say(n0, UnregisterWorker{"s7", "closed"});
  REQUIRE(join(kMaxJobs).ok());
}

TEST_CASE("a daemon that registers without end is refused with the number, others are not",
          "[control][leader]") {
  LeaderWorld world;
  const PeerId n0 = world.Attach("n0");
  const PeerId n1 = world.Attach("n1");
  const auto join = [&](PeerId peer, const std::string& node, std::size_t worker) {
    Registration trainer = TrainerRank(0, 1, node);
    trainer.job = "job" + std::to_string(worker % 512);
    trainer.layout.name.rank = static_cast<std::int32_t>(worker / 512);
    return world.Join(peer, "s" + std::to_string(worker), trainer, 4096);
  };
  for (std::size_t worker = 0; worker < kMaxSessions; ++worker) {
    REQUIRE(join(n0, "n0", worker).ok());
  }
  const absl::Status refused = join(n0, "n0", kMaxSessions);
  REQUIRE(refused.code() == absl::StatusCode::kResourceExhausted);
  REQUIRE(Text(refused) == "daemon n0 has 4096 workers, at most 4096");
  REQUIRE(join(n1, "n1", kMaxSessions).ok());
  world.Say(n0, UnregisterWorker{"s7", "closed"});
  REQUIRE(join(n0, "n0", 7).ok());
}

TEST_CASE("a node name that is attached refuses another process", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId second = world.Attach("n1", 2);
  REQUIRE(world.closed.at(second).code() == absl::StatusCode::kAlreadyExists);
  REQUIRE_THAT(Text(world.closed.at(second)), Contains("node n1 is attached already"));
  REQUIRE(world.leader().Members("gqa").size() == 4);

  world.leader().OnPeerLost(nodes.n1, absl::UnavailableError("cut"));
  const PeerId third = world.Attach("n1", 2);
  REQUIRE(world.closed.count(third) == 0);
  REQUIRE(world.Take<Welcome>(third).at(0).leader == Incarnation(70));
}

TEST_CASE("the same process on a new stream takes the place of its old one", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId again = world.Attach("n1", 1);
  REQUIRE(world.closed.count(again) == 0);
  REQUIRE(world.closed.at(nodes.n1).code() == absl::StatusCode::kUnavailable);
  REQUIRE(world.leader().Members("gqa").size() == 2);
  REQUIRE(world.Join(again, "r0", RolloutRank("engine0", 0, 2, "n1"), 2).ok());
  // The end of the old stream is no news any more.
  world.leader().OnPeerLost(nodes.n1, absl::UnavailableError("cut"));
  REQUIRE(world.leader().Members("gqa").size() == 3);
}

TEST_CASE("a stream that does not begin with hello is closed", "[control][leader]") {
  LeaderWorld world;
  world.Say(PeerId(99), UnregisterWorker{"x", "y"});
  REQUIRE(world.closed.at(PeerId(99)).code() == absl::StatusCode::kFailedPrecondition);
  const PeerId nameless = world.Attach("");
  REQUIRE(world.closed.at(nameless).code() == absl::StatusCode::kInvalidArgument);
  const PeerId twice = world.Attach("n5");
  world.Say(twice, ClusterHello{"n5", Incarnation(1), "", "tcp", "host", 1});
  REQUIRE(world.closed.at(twice).code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a daemon cannot speak for another daemon's session", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Publish(nodes.n1, "t0", 1);
  REQUIRE(world.PublishEnd(nodes.n1, "t0")->status.code() == absl::StatusCode::kFailedPrecondition);
  world.Say(nodes.n0, UnregisterWorker{"r0", "closed"});
  world.Accept(nodes.n0, "nobody", 1);
  REQUIRE(world.ReceiveEnd(nodes.n0, "nobody")->status.code() ==
          absl::StatusCode::kFailedPrecondition);
  REQUIRE(world.leader().Members("gqa").size() == 4);
  REQUIRE(world.leader().Versions("gqa", 0).empty());
  REQUIRE(world.leader().stale_messages() == 3);
}

TEST_CASE("a version held by a member is spent, whoever led before", "[control][leader]") {
  LeaderWorld world({}, Term(8));
  const PeerId n0 = world.Attach("n0");
  const PeerId n1 = world.Attach("n1");
  REQUIRE(world.Join(n0, "t0", TrainerRank(0, 1, "n0"), 1, {Version(7)}).ok());
  REQUIRE(world.Join(n1, "r0", RolloutRank("engine0", 0, 1, "n1"), 1, {Version(7)}).ok());
  world.Publish(n0, "t0", 7);
  REQUIRE(Text(world.PublishEnd(n0, "t0")->status) == "version 7 is not above 7 of job gqa");
  world.Publish(n0, "t0", 8);
  world.Accept(n1, "r0", 8);
  REQUIRE(world.PublishEnd(n0, "t0")->status.ok());
}

TEST_CASE("a census names the missing ranks, the first when there are many", "[control][state]") {
  GroupCensus census{"engine0", Role::kRollout, 4, 2, {2, 3}};
  REQUIRE(census.ToString() == "engine0: 2 of 4 registered: missing ranks 2,3");
  REQUIRE_FALSE(census.whole());
  census = {"engine0", Role::kRollout, 20, 2, {}};
  for (std::int32_t rank = 2; rank < 20; ++rank) census.missing.push_back(rank);
  REQUIRE_THAT(census.ToString(), Contains(",17 and 2 more"));
  census = {"engine0", Role::kRollout, 2, 2, {}};
  REQUIRE(census.ToString() == "engine0: 2 of 2 registered");
}

}  // namespace
}  // namespace wb
