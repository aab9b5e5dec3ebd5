// Groups that come and go between versions.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;

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

}  // namespace
}  // namespace wb
