// Groups whose layouts do not fit the trainers', beside groups whose do.

#include <string>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::Text;

constexpr const char* kWhy =
    "job gqa version 1 to bad: tensor zz is held by no trainer, wanted by bad/0";

/// Group bad with one rank (session b0) on n2, which wants a tensor that no trainer has.
PeerId AddMisfit(LeaderWorld& world) {
  const PeerId n2 = world.Attach("n2");
  Registration wants = RolloutRank("bad", 0, 1, "n2");
  wants.tensors.front().name = "zz";
  REQUIRE(world.Join(n2, "b0", wants, 1).ok());
  return n2;
}

TEST_CASE("a group that does not fit the trainers fails alone, and hears why",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId n2 = AddMisfit(world);
  world.Accept(n2, "b0", 1);  // in time or late, it hears the same
  nodes.PublishAll(1);
  const absl::Status why = world.ReceiveEnd(n2, "b0")->status;
  REQUIRE(why.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE_THAT(Text(why), Contains(kWhy) && !Contains("wanted by no rollout"));
  world.Accept(n2, "b0", 1);
  REQUIRE(world.ReceiveEnd(n2, "b0")->status == why);
  REQUIRE(world.Take<VersionFailed>(n2).at(0).status == why);
  REQUIRE(world.Take<VersionOffered>(n2).empty());
  REQUIRE(world.Take<PrepareAttempt>(n2).empty());

  nodes.AcceptAll(1);
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.ok());
  const FinishPublish end = *world.PublishEnd(nodes.n0, "t0");
  REQUIRE(end.status == why);
  REQUIRE(end.outcomes.size() == 2);
  REQUIRE(end.outcomes[0].group == "bad");
  REQUIRE(end.outcomes[0].status == why);
  REQUIRE(end.outcomes[1].status.ok());
  REQUIRE(world.Newest().state == "released");
  REQUIRE(world.NewestTo("bad").state == "failed");
  REQUIRE(world.NewestTo("bad").status == why);
  REQUIRE(world.NewestTo("bad").bytes_planned == 0);
  REQUIRE(world.NewestTo("engine0").bytes_planned == 256);
}

TEST_CASE("the reasons of the newest offer are listed until the next, also when all have gone",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  REQUIRE(world.leader().Refused("", 0).total == 0);
  const PeerId n2 = AddMisfit(world);
  nodes.PublishAll(1);
  const RefusalsSnapshot refused = world.leader().Refused("gqa", 0);
  REQUIRE(refused.total == refused.refusals.size());
  REQUIRE(refused.refusals.at(0).group == "bad");
  REQUIRE(refused.refusals.at(0).refusal.tensor == "zz");
  REQUIRE(world.leader().Refused("other", 0).total == 0);
  nodes.AcceptAll(1);
  world.Say(n2, UnregisterWorker{"b0", "closed"});
  REQUIRE(world.leader().Refused("gqa", 0).total == refused.total);
  nodes.PublishAll(2);
  REQUIRE(world.leader().Refused("gqa", 0).total == 0);
}

TEST_CASE("beside a misfit every version goes, and when it has left all is well",
          "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId n2 = AddMisfit(world);
  for (std::uint64_t version = 1; version <= 2; ++version) {
    nodes.PublishAll(version);
    nodes.AcceptAll(version);
    REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status.ok());
    REQUIRE_FALSE(world.PublishEnd(nodes.n0, "t0")->status.ok());
  }
  // Nothing is solved again while all stay: the plan has travelled with the first version.
  const std::vector<PrepareAttempt> prepares = world.Take<PrepareAttempt>(nodes.n1);
  REQUIRE(prepares.at(0).plan.has_value());
  REQUIRE_FALSE(prepares.at(1).plan.has_value());

  world.Say(n2, UnregisterWorker{"b0", "closed"});
  nodes.PublishAll(3);
  nodes.AcceptAll(3);
  REQUIRE(world.PublishEnd(nodes.n0, "t0")->status.ok());
}

TEST_CASE("when no group can be served, the version fails with every reason", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const PeerId n2 = AddMisfit(world);
  for (const char* session : {"t0", "t1"}) {
    world.Say(nodes.n0, UnregisterWorker{session, "closed"});
  }
  // The trainer holds rows 0..3 only, of 8.
  REQUIRE(world.Join(nodes.n0, "half", test::TrainerRank(0, 2, "n0"), 1).ok());
  world.Accept(nodes.n1, "r0", 1);
  world.Publish(nodes.n0, "half", 1);
  const absl::Status status = world.PublishEnd(nodes.n0, "half")->status;
  REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE_THAT(Text(status), Contains("wanted by engine0/0") && Contains("wanted by bad/0"));
  REQUIRE(world.ReceiveEnd(nodes.n1, "r0")->status == status);
  REQUIRE(world.Take<VersionFailed>(n2).at(0).status == status);
  REQUIRE(world.Newest().state == "failed");
  REQUIRE(world.Newest().deliveries.empty());
  const RefusalsSnapshot first = world.leader().Refused("gqa", 1);
  REQUIRE(first.refusals.size() == 1);
  REQUIRE(first.refusals[0].group.empty());
  REQUIRE(first.total > 1);
}

}  // namespace
}  // namespace wb
