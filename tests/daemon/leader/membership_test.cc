// Groups that come and go between versions.

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::Text;

/// Waits two seconds for participants, and wants two groups.
LeaderOptions TwoGroups() {
  LeaderOptions options;
  options.start_timeout = seconds(2);
  options.min_groups = 2;
  return options;
}

/// Besides the pair: engine1 with one rank on n2.
struct ThreeNodes : PairOfNodes {
  explicit ThreeNodes(LeaderWorld& leader_world)
      : PairOfNodes(leader_world), n2(world.Attach("n2")) {}

  void JoinEngine1(const SessionId& session) {
    REQUIRE(world.Join(n2, session, RolloutRank("engine1", 0, 1, "n2"), 1).ok());
  }
  void Update(std::uint64_t version, const SessionId& engine1) {
    PublishAll(version);
    AcceptAll(version);
    if (!engine1.empty()) world.Accept(n2, engine1, version);
    REQUIRE(world.Newest().version == Version(version));
    REQUIRE(world.Newest().status.ok());
    REQUIRE(world.Newest().state == "released");
  }
  /// What `peer` was asked to prepare for the group.
  PrepareAttempt Asked(PeerId peer, const std::string& group) {
    std::optional<PrepareAttempt> found;
    for (PrepareAttempt& message : world.Take<PrepareAttempt>(peer)) {
      if (message.group == group) found = std::move(message);
    }
    REQUIRE(found.has_value());
    return *found;
  }

  PeerId n2;
};

TEST_CASE("a group that joins or leaves does not touch the plans of the others",
          "[control][leader]") {
  LeaderWorld world;
  ThreeNodes nodes(world);
  nodes.Update(1, "");
  const PrepareAttempt alone = nodes.Asked(nodes.n1, "engine0");
  REQUIRE(alone.plan.has_value());
  REQUIRE(alone.plan->fingerprint == alone.fingerprint);
  world.Take<PrepareAttempt>(nodes.n0);

  nodes.JoinEngine1("e0");
  nodes.Update(2, "e0");
  const PrepareAttempt joined = nodes.Asked(nodes.n1, "engine0");
  REQUIRE(joined.fingerprint == alone.fingerprint);
  REQUIRE(joined.attempt != alone.attempt);
  REQUIRE_FALSE(joined.plan.has_value());
  const std::vector<PrepareAttempt> at_source = world.Take<PrepareAttempt>(nodes.n0);
  REQUIRE(at_source.size() == 2);
  for (const PrepareAttempt& message : at_source) {
    INFO(message.group);
    REQUIRE(message.plan.has_value() == (message.group == "engine1"));
  }

  world.Say(nodes.n2, UnregisterWorker{"e0", "done"});
  nodes.Update(3, "");
  REQUIRE(nodes.Asked(nodes.n1, "engine0").fingerprint == alone.fingerprint);
  REQUIRE_FALSE(nodes.Asked(nodes.n0, "engine0").plan.has_value());
}

TEST_CASE("a group that comes back as it was has the plan it had", "[control][leader]") {
  LeaderWorld world;
  ThreeNodes nodes(world);
  nodes.JoinEngine1("e0");
  nodes.Update(1, "e0");
  const PrepareAttempt before = nodes.Asked(nodes.n2, "engine1");
  world.Take<PrepareAttempt>(nodes.n0);
  world.Say(nodes.n2, UnregisterWorker{"e0", "restarts"});
  nodes.JoinEngine1("e1");
  nodes.Update(2, "e1");
  const PrepareAttempt after = nodes.Asked(nodes.n2, "engine1");
  REQUIRE(after.fingerprint == before.fingerprint);
  REQUIRE(after.plan.has_value());  // its daemon let go of it with the job's last session
  for (const PrepareAttempt& message : world.Take<PrepareAttempt>(nodes.n0)) {
    REQUIRE_FALSE(message.plan.has_value());
  }
}

TEST_CASE("daemons need not keep the plans of engines that come under ever new names",
          "[control][leader]") {
  LeaderWorld world;
  ThreeNodes nodes(world);
  std::vector<std::string> forgotten;
  for (std::uint64_t version = 1; version <= 40; ++version) {
    const std::string name = absl::StrCat("pod-", version);
    REQUIRE(world.Join(nodes.n2, name, RolloutRank(name, 0, 1, "n2"), 1).ok());
    nodes.Update(version, name);
    for (const PrepareAttempt& message : world.Take<PrepareAttempt>(nodes.n0)) {
      REQUIRE(message.plan.has_value() == (message.group == name || version == 1));
      forgotten.insert(forgotten.end(), message.forget.begin(), message.forget.end());
    }
    world.Say(nodes.n2, UnregisterWorker{name, "scaled down"});
  }
  REQUIRE(forgotten.size() == 34);  // 17 at a time: 16 may come back
  REQUIRE(std::count(forgotten.begin(), forgotten.end(), "pod-1") == 1);
  REQUIRE(std::count(forgotten.begin(), forgotten.end(), "engine0") == 0);

  // Who comes back nevertheless gets its plan again.
  REQUIRE(world.Join(nodes.n2, "again", RolloutRank("pod-1", 0, 1, "n2"), 1).ok());
  nodes.Update(41, "again");
  REQUIRE(nodes.Asked(nodes.n0, "pod-1").plan.has_value());
}

TEST_CASE("a version waits for min_groups groups until start_timeout", "[control][leader]") {
  LeaderWorld world(TwoGroups());
  ThreeNodes nodes(world);
  nodes.PublishAll(1);
  REQUIRE(world.Newest().state == "opening");
  SECTION("and goes as soon as they are there") {
    world.timers.Advance(seconds(1));
    nodes.JoinEngine1("e0");
    REQUIRE(world.Newest().state == "offered");
    nodes.AcceptAll(1);
    world.Accept(nodes.n2, "e0", 1);
    REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  }
  SECTION("and fails, naming who is missing, when they are not") {
    REQUIRE(world.Join(nodes.n2, "e0", RolloutRank("engine1", 0, 2, "n2"), 2).ok());
    world.timers.Advance(seconds(2));
    const absl::Status status = world.PublishEnd(nodes.n0, "t0")->status;
    REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
    REQUIRE(Text(status) ==
            "job gqa version 1: of at least 2 rollout groups (leader.min_groups) only engine0 is "
            "whole 2.0 s after all trainer ranks published: engine1: 1 of 2 registered: missing "
            "ranks 1");
  }
}

TEST_CASE("a version does not go with fewer than min_groups ready", "[control][leader]") {
  LeaderWorld world(TwoGroups());
  ThreeNodes nodes(world);
  nodes.JoinEngine1("e0");
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  REQUIRE(world.NewestTo("engine0").state == "prepared");
  world.timers.Advance(seconds(2));
  const FinishPublish end = *world.PublishEnd(nodes.n0, "t0");
  REQUIRE(end.status.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE_THAT(Text(end.status),
               Contains("job gqa version 1: of at least 2 rollout groups (leader.min_groups) only "
                        "engine0 is ready: ") &&
                   Contains("waiting for engine1/0 (node n2) to accept"));
  REQUIRE_FALSE(world.ReceiveEnd(nodes.n1, "r0")->status.ok());
  REQUIRE(world.Take<GoAttempt>(nodes.n1).empty());
  REQUIRE(world.Newest().state == "failed");
}

TEST_CASE("a group that joins while a version moves starts with the next", "[control][leader]") {
  LeaderWorld world;
  ThreeNodes nodes(world);
  world.manners[nodes.n1].stages = false;
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  REQUIRE(world.NewestTo("engine0").state == "moving");
  nodes.JoinEngine1("e0");
  world.Accept(nodes.n2, "e0", 1);
  REQUIRE_THAT(Text(world.ReceiveEnd(nodes.n2, "e0")->status),
               Contains("engine1 was not whole when version 1 was offered"));
  const AttemptId attempt = world.NewestTo("engine0").attempt;
  world.Say(nodes.n1, AttemptStaged{attempt, {}});
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->outcomes.size() == 1);
  world.manners[nodes.n1].stages = true;
  nodes.Update(2, "e0");
  REQUIRE(world.Newest().deliveries.size() == 2);
}

/// A version that engine0 receives and engine1 gives up.
void UpdateWithoutEngine1(LeaderWorld& world,
                          ThreeNodes& nodes,
                          const std::set<std::string>& required) {
  nodes.JoinEngine1("e0");
  world.Publish(nodes.n0, "t0", 1, required);
  world.Publish(nodes.n0, "t1", 1, required);
  world.Accept(nodes.n2, "e0", 1);
  world.Say(nodes.n2, GiveUpVersion{"e0", Version(1), "its deadline has passed"});
  nodes.AcceptAll(1);
}

TEST_CASE("Publish is OK when every required group committed", "[control][leader]") {
  LeaderWorld world;
  ThreeNodes nodes(world);
  SECTION("the one that failed is not required") {
    UpdateWithoutEngine1(world, nodes, {"engine0"});
    const FinishPublish end = *world.PublishEnd(nodes.n0, "t0");
    REQUIRE(end.status.ok());
    REQUIRE(end.outcomes.at(0).status.ok());
    REQUIRE(end.outcomes.at(1).group == "engine1");
    REQUIRE(end.outcomes.at(1).status.code() == absl::StatusCode::kDeadlineExceeded);
    REQUIRE(world.Newest().status.ok());
  }
  SECTION("the one that failed is required") {
    UpdateWithoutEngine1(world, nodes, {"engine1"});
    const FinishPublish end = *world.PublishEnd(nodes.n0, "t0");
    REQUIRE(end.status == end.outcomes.at(1).status);
    REQUIRE(end.outcomes.at(0).status.ok());
    REQUIRE(world.Newest().state == "released");
  }
  SECTION("all are, unless told otherwise") {
    UpdateWithoutEngine1(world, nodes, {});
    REQUIRE_FALSE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  }
}

TEST_CASE("a required group that is not there is waited for, then named", "[control][leader]") {
  LeaderWorld world({milliseconds(2000), milliseconds(5000)});
  ThreeNodes nodes(world);
  const std::set<std::string> required{"engine0", "engine1"};
  world.Publish(nodes.n0, "t0", 1, required);
  world.Publish(nodes.n0, "t1", 1, required);
  REQUIRE(world.Newest().state == "opening");
  REQUIRE_THAT(world.leader().Waits().at(0), Contains("for required group engine1 to register"));
  SECTION("it comes") {
    nodes.JoinEngine1("e0");
    REQUIRE(world.Newest().state == "offered");
  }
  SECTION("it does not") {
    world.timers.Advance(seconds(2));
    REQUIRE(Text(world.PublishEnd(nodes.n0, "t1")->status) ==
            "job gqa version 1: required group engine1 is not whole 2.0 s after all trainer ranks "
            "published: required group engine1 is not registered");
  }
}

TEST_CASE("a required group that is no rollout group is named at once", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Publish(nodes.n0, "t0", 1, {"policy"});
  world.Publish(nodes.n0, "t1", 1, {"policy"});
  REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, "t0")->status),
               Contains("required group policy is not whole"));
}

TEST_CASE("trainer ranks that require different groups are refused by name", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  world.Publish(nodes.n0, "t0", 1, {"engine0"});
  world.Publish(nodes.n0, "t1", 1);
  for (const char* session : {"t0", "t1"}) {
    const absl::Status status = world.PublishEnd(nodes.n0, session)->status;
    REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
    REQUIRE(Text(status) ==
            "job gqa version 1: trainer ranks require different rollout groups: policy/1 all, the "
            "others engine0");
  }
}

/// Session t1 restarts as `session`.
void RestartTrainer(PairOfNodes& nodes, const SessionId& session) {
  nodes.world.Say(nodes.n0, UnregisterWorker{"t1", "process ended"});
  REQUIRE(nodes.world.Join(nodes.n0, session, test::TrainerRank(1, 2, "n0"), 2).ok());
}

TEST_CASE("whoever publishes a version that has failed hears the first reason, once",
          "[control][leader]") {
  LeaderWorld world({milliseconds(2000), milliseconds(5000)});
  PairOfNodes nodes(world);
  SessionId late = "t1";
  SECTION("another gave up while it opened") {
    world.Publish(nodes.n0, "t0", 1);
    world.Say(nodes.n0, GiveUpVersion{"t0", Version(1), "its deadline has passed"});
  }
  SECTION("it died before it published, and comes back") {
    world.Publish(nodes.n0, "t0", 1);
    RestartTrainer(nodes, late = "t1 again");
  }
  SECTION("it died once the version was offered, and comes back") {
    nodes.PublishAll(1);
    REQUIRE(world.Newest().state == "offered");
    RestartTrainer(nodes, late = "t1 again");
  }
  SECTION("nobody received it, and it comes back") {
    nodes.PublishAll(1);
    world.timers.Advance(seconds(2));
    RestartTrainer(nodes, late = "t1 again");
  }
  REQUIRE(world.Newest().state == "failed");
  const absl::Status first = world.PublishEnd(nodes.n0, "t0")->status;
  REQUIRE_FALSE(first.ok());
  REQUIRE(first == world.Newest().status);
  world.Take<FinishPublish>(nodes.n0);
  world.Publish(nodes.n0, late, 1);
  REQUIRE(world.PublishEnd(nodes.n0, late)->status == first);
  world.Publish(nodes.n0, late, 1);
  REQUIRE_THAT(Text(world.PublishEnd(nodes.n0, late)->status),
               Contains("version 1 is not above 1 of job gqa; it failed: " + Text(first)));
  world.Publish(nodes.n0, "t0", 2);
  world.Publish(nodes.n0, late, 2);
  REQUIRE(world.Newest().version == Version(2));
  REQUIRE(world.Newest().state == "offered");
}

/// Session `session` of engine1 dies; what the leader says to its next process, session `again`.
absl::Status Restart(ThreeNodes& nodes, const SessionId& session, const SessionId& again) {
  nodes.world.Say(nodes.n2, UnregisterWorker{session, "process ended"});
  nodes.world.joining = Incarnation(nodes.world.joining.value() + 1);
  return nodes.world.Join(nodes.n2, again, RolloutRank("engine1", 0, 1, "n2"), 1);
}

TEST_CASE("a group that dies after each version is retired after retire_after restarts",
          "[control][leader][field][case-103]") {
  LeaderOptions options;
  options.start_timeout = seconds(2);
  options.min_groups = GENERATE(1U, 2U);
  LeaderWorld world(options);
  ThreeNodes nodes(world);
  nodes.JoinEngine1("e0");
  nodes.Update(1, "e0");
  REQUIRE(Restart(nodes, "e0", "e1").ok());
  nodes.Update(2, "e1");
  REQUIRE(Restart(nodes, "e1", "e2").ok());
  nodes.Update(3, "e2");
  const absl::Status refused = Restart(nodes, "e2", "e3");
  REQUIRE(refused.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Text(refused) ==
          "engine1 is retired (leader.retire_after is 3): it has restarted 3 times without "
          "receiving two versions in a row; the last time engine1/0 (node n2) left: process ended");
  for (const char* again : {"e4", "e5", "e6"}) {
    REQUIRE(world.Join(nodes.n2, again, RolloutRank("engine1", 0, 1, "n2"), 1) == refused);
  }
  REQUIRE(world.Join(nodes.n2, "other", RolloutRank("engine2", 0, 2, "n2"), 2).ok());
  world.Say(nodes.n2, UnregisterWorker{"other", "done"});
  world.Take<FinishPublish>(nodes.n0);
  if (options.min_groups == 1) {
    nodes.Update(4, "");  // nobody waits for it
    return;
  }
  nodes.PublishAll(4);
  world.timers.Advance(seconds(2));
  REQUIRE(Text(world.PublishEnd(nodes.n0, "t0")->status) ==
          "job gqa version 4: of at least 2 rollout groups (leader.min_groups) only engine0 is "
          "whole 2.0 s after all trainer ranks published: engine1 is retired");
}

TEST_CASE("what is no restart retires nobody", "[control][leader]") {
  LeaderWorld world;
  ThreeNodes nodes(world);
  nodes.JoinEngine1("e");
  SECTION("it says that it leaves") {
    for (int round = 0; round < 10; ++round) {
      world.Say(nodes.n2, UnregisterWorker{"e", "left: scaled down", true});
      world.joining = Incarnation(world.joining.value() + 1);
      nodes.JoinEngine1("e");
    }
  }
  SECTION("its stream is cut, and the same process comes back") {
    for (int round = 0; round < 10; ++round) {
      world.leader().OnPeerLost(nodes.n2, absl::UnavailableError("cut"));
      nodes.n2 = world.Attach("n2");
      nodes.JoinEngine1("e");
    }
  }
  SECTION("it receives two versions between restarts") {
    for (std::uint64_t version = 1; version < 20; version += 2) {
      nodes.Update(version, "e");
      nodes.Update(version + 1, "e");
      REQUIRE(Restart(nodes, "e", "e").ok());
    }
  }
}

TEST_CASE("ranks that die together are one restart, and retire_after 0 is never",
          "[control][leader]") {
  LeaderOptions options;
  options.retire_after = GENERATE(0U, 2U);
  LeaderWorld world(options);
  ThreeNodes nodes(world);
  const auto join = [&](int rank) {
    return world.Join(nodes.n2, "e" + std::to_string(rank), RolloutRank("engine1", rank, 4, "n2"),
                      4);
  };
  const auto restart = [&] {
    for (int rank = 0; rank < 4; ++rank) {
      world.Say(nodes.n2, UnregisterWorker{"e" + std::to_string(rank), "process ended"});
    }
    world.joining = Incarnation(world.joining.value() + 1);
    bool all = true;
    for (int rank = 0; rank < 4; ++rank) all = join(rank).ok() && all;
    return all;
  };
  for (int rank = 0; rank < 4; ++rank) REQUIRE(join(rank).ok());
  REQUIRE(restart());
  REQUIRE(restart() == (options.retire_after == 0));
}

}  // namespace
}  // namespace wb
