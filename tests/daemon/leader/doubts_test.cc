// Versions that are in doubt: the leader, or the daemon, that would have told the outcome is gone.
#include <chrono>
#include <string>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/leader_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using test::HeldBefore;
using test::LeaderWorld;
using test::PairOfNodes;
using test::RolloutRank;
using test::TrainerRank;

constexpr AttemptId kAttempt(77);

HeldBefore InDoubt(std::uint64_t version, AttemptId attempt = kAttempt) {
  return {Version(version), MemoryState::kInDoubt, attempt};
}

/// A leader that has just started: the ranks of engine0, on a node each, come back to it.
struct NewLeader {
  LeaderWorld world;
  PeerId n0 = world.Attach("n0");
  PeerId n1 = world.Attach("n1");

  void Back(int rank, const HeldBefore& held, std::vector<GroupCommit> commits = {}) {
    const std::string node = rank == 0 ? "n0" : "n1";
    REQUIRE(world
                .Join(rank == 0 ? n0 : n1, "r" + std::to_string(rank),
                      RolloutRank("engine0", rank, 2, node), 2, held, std::move(commits))
                .ok());
  }
  std::vector<VersionOutcome> Told(int rank) {
    return world.Take<VersionOutcome>(rank == 0 ? n0 : n1);
  }
  bool Decided(int rank, bool committed) {
    const std::vector<VersionOutcome> told = Told(rank);
    return told.size() == 1 && told.front().committed == committed &&
           told.front().session == "r" + std::to_string(rank);
  }
};

TEST_CASE("a version that all ranks of a group have staged commits under the next leader",
          "[control][leader]") {
  NewLeader leader;
  leader.Back(0, InDoubt(5));
  REQUIRE(leader.Told(0).empty());
  REQUIRE_THAT(leader.world.leader().Waits().at(0), Contains("version 5: in doubt at engine0"));
  leader.Back(1, InDoubt(5));
  REQUIRE(leader.Decided(0, true));
  REQUIRE(leader.Decided(1, true));
  for (const MemberSnapshot& member : leader.world.leader().Members("gqa")) {
    REQUIRE(member.memory == MemoryState::kValid);
    REQUIRE(member.held_version == Version(5));
  }
  REQUIRE(leader.world.leader().Waits().empty());
}

TEST_CASE("a commit that one rank has heard of is completed at the others", "[control][leader]") {
  NewLeader leader;
  SECTION("it comes before") {
    leader.Back(0, {Version(5)});
    leader.Back(1, InDoubt(5));
  }
  SECTION("it comes after") {
    leader.Back(1, InDoubt(5));
    leader.Back(0, {Version(5)});
  }
  REQUIRE(leader.Decided(1, true));
  REQUIRE(leader.Told(0).empty());
}

TEST_CASE("a commit that the trainers' daemon has heard of is completed", "[control][leader]") {
  NewLeader leader;
  const auto trainer = [&] {
    REQUIRE(leader.world
                .Join(leader.n0, "t0", TrainerRank(0, 1, "n0"), 1, {Version(5)},
                      {{"engine0", Version(5)}})
                .ok());
  };
  SECTION("it comes before") {
    trainer();
    leader.Back(1, InDoubt(5));
  }
  SECTION("it comes after") {
    leader.Back(1, InDoubt(5));
    trainer();
  }
  REQUIRE(leader.Decided(1, true));
}

TEST_CASE("commits to many groups are all remembered", "[control][leader]") {
  NewLeader leader;
  std::vector<GroupCommit> commits = {{"engine0", Version(5)}};
  for (int i = 0; i < 500; ++i) commits.push_back({"pod-" + std::to_string(i), Version(5)});
  REQUIRE(leader.world
              .Join(leader.n0, "t0", TrainerRank(0, 1, "n0"), 1, {Version(5)}, std::move(commits))
              .ok());
  leader.Back(0, {});  // another process: it cannot tell
  leader.Back(1, InDoubt(5));
  REQUIRE(leader.Decided(1, true));
}

TEST_CASE("a rank that has surely not staged a version fails it at once", "[control][leader]") {
  NewLeader leader;
  leader.Back(0, InDoubt(5));
  SECTION("its memory is invalid") {
    leader.Back(1, {Version(), MemoryState::kInvalid});
  }
  SECTION("it holds the version before") {
    leader.Back(1, {Version(4)});
  }
  SECTION("it has staged another try of it") {
    leader.Back(1, InDoubt(5, AttemptId(78)));
  }
  REQUIRE(leader.Decided(0, false));
  REQUIRE(leader.world.leader().Members("gqa").front().memory == MemoryState::kInvalid);
}

TEST_CASE("a rank that does not come back in time fails what the others hold in doubt",
          "[control][leader]") {
  NewLeader leader;
  leader.Back(0, InDoubt(5));
  SECTION("it is away") {}
  SECTION("it has started anew, and cannot tell") {
    leader.Back(1, {});
  }
  leader.world.timers.Advance(milliseconds(9'999));
  REQUIRE(leader.Told(0).empty());
  leader.world.timers.Advance(milliseconds(1));
  REQUIRE(leader.Decided(0, false));
}

TEST_CASE("a rank that comes back after the decision is told the same", "[control][leader]") {
  NewLeader leader;
  leader.Back(0, InDoubt(5));
  leader.world.timers.Advance(milliseconds(10'000));
  REQUIRE(leader.Decided(0, false));
  leader.Back(1, InDoubt(5));
  REQUIRE(leader.Decided(1, false));
}

TEST_CASE("numbers that an earlier leader gave out stay spent", "[control][leader]") {
  NewLeader leader;
  leader.Back(0, InDoubt(5));
  leader.Back(1, {Version(), MemoryState::kInvalid});
  leader.world.Say(leader.n0, UnregisterWorker{"r0", "left"});
  REQUIRE(leader.world.Join(leader.n0, "t0", TrainerRank(0, 1, "n0"), 1).ok());
  leader.world.Publish(leader.n0, "t0", 5);
  const auto end = leader.world.PublishEnd(leader.n0, "t0");
  REQUIRE(end.has_value());
  REQUIRE_THAT(test::Text(end->status), Contains("version 5 is not above 5"));
}

TEST_CASE("a rank that lost its daemon is told what its leader has decided", "[control][leader]") {
  LeaderWorld world;
  PairOfNodes nodes(world);
  const bool decided = GENERATE(true, false);
  world.manners[nodes.n1].commits = false;
  world.manners[nodes.n1].stages = decided;
  nodes.PublishAll(1);
  nodes.AcceptAll(1);
  const AttemptId attempt = world.NewestTo("engine0").attempt;
  world.leader().OnPeerLost(nodes.n1, absl::UnavailableError("killed"));
  const PeerId again = world.Attach("n1", 2);
  REQUIRE(world
              .Join(again, "r0-again", RolloutRank("engine0", 0, 2, "n1"), 2,
                    {Version(1), MemoryState::kInDoubt, attempt})
              .ok());
  std::vector<VersionOutcome> told = world.Take<VersionOutcome>(again);
  REQUIRE(told.size() == 1);
  REQUIRE(told.front().committed == decided);
  // Of another try nothing is known but that it is none of ours.
  REQUIRE(world
              .Join(again, "r1-again", RolloutRank("engine0", 1, 2, "n1"), 2,
                    {Version(1), MemoryState::kInDoubt, AttemptId(attempt.value() + 1)})
              .ok());
  told = world.Take<VersionOutcome>(again);
  REQUIRE(told.size() == 1);
  REQUIRE_FALSE(told.front().committed);
}

}  // namespace
}  // namespace wb
