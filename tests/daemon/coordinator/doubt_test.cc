// What a daemon does with versions that are staged here when the leader that would decide is lost.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/daemon_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using std::chrono::seconds;
using test::DaemonWorld;
using test::HeldBefore;
using test::OpenEngine;
using test::PrepareFor;
using test::RolloutRank;
using test::Text;

constexpr AttemptId kAttempt(1001);

/// engine0 on n1 with both ranks in Receive of version 1, staged; then its leader is lost.
struct Orphaned {
  explicit Orphaned(DaemonWorld& daemon_world) : world(daemon_world) {
    OpenEngine(world);
    first = world.Receive("r0", 1);
    second = world.Receive("r1", 1);
    world.Say(PrepareFor("n1", 1));
    world.Settle();
    world.Say(GoAttempt{kAttempt});
    world.Settle();
    REQUIRE(world.staged.size() == 2);
    world.coordinator().OnLeaderLost(absl::UnavailableError("connection reset"));
    world.Take<RegisterWorker>();
  }
  /// The next leader admits everybody.
  void NewLeader() { world.coordinator().OnLeaderConnected(); }

  DaemonWorld& world;
  DaemonWorld::Pending<ReceiveResult> first;
  DaemonWorld::Pending<ReceiveResult> second;
};

TEST_CASE("clients are told that all is staged before the leader is", "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  world.Receive("r0", 1);
  world.Receive("r1", 1);
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  REQUIRE(world.staged == std::map<SessionId, Version>{{"r0", Version(1)}, {"r1", Version(1)}});
  REQUIRE(world.Take<AttemptStaged>().size() == 1);
}

TEST_CASE("a Receive that was staged ends by the next leader's word", "[control][coordinator]") {
  DaemonWorld world;
  Orphaned orphaned(world);
  orphaned.NewLeader();
  const bool committed = GENERATE(true, false);
  world.Say(VersionOutcome{"r0", Version(1), committed});
  REQUIRE(orphaned.first->has_value());
  REQUIRE((*orphaned.first)->status.ok() == committed);
  REQUIRE_FALSE((*orphaned.first)->in_doubt);
  REQUIRE_FALSE(orphaned.second->has_value());
  REQUIRE(world.log.back() == "staged r1");  // the memory is let go when both know
  world.Say(VersionOutcome{"r1", Version(1), committed});
  REQUIRE((*orphaned.second)->status.ok() == committed);
  REQUIRE(world.log.back() == "finish");
  if (committed) {
    REQUIRE((*orphaned.first)->bytes_received == 128);
  } else {
    REQUIRE_THAT(Text((*orphaned.first)->status), Contains("leader was lost before every rank"));
  }
  world.coordinator().OnLeaderLost(absl::UnavailableError("again"));
  world.coordinator().OnLeaderConnected();
  const RegisterWorker again = world.Take<RegisterWorker>().back();
  REQUIRE(again.memory == (committed ? MemoryState::kValid : MemoryState::kInvalid));
  REQUIRE(again.commits.size() == (committed ? 1 : 0));
}

TEST_CASE("a client that was answered in doubt is told the outcome when it is known",
          "[control][coordinator]") {
  DaemonWorld world;
  Orphaned orphaned(world);
  world.timers.Advance(seconds(5));
  REQUIRE((*orphaned.first)->status.code() == absl::StatusCode::kUnavailable);
  REQUIRE((*orphaned.first)->in_doubt);
  orphaned.NewLeader();
  world.Say(VersionOutcome{"r0", Version(1), true});
  world.Say(VersionOutcome{"r1", Version(1), true});
  REQUIRE(world.outcomes.at("r0") == std::pair{Version(1), true});
  REQUIRE(world.outcomes.at("r1") == std::pair{Version(1), true});
}

TEST_CASE("an outcome of what is not in doubt is dropped", "[control][coordinator]") {
  DaemonWorld world;
  Orphaned orphaned(world);
  orphaned.NewLeader();
  const std::uint64_t before = world.coordinator().stale_messages();
  world.Say(VersionOutcome{"r0", Version(2), true});
  world.Say(VersionOutcome{"r7", Version(1), true});
  REQUIRE_FALSE(orphaned.first->has_value());
  world.Say(VersionOutcome{"r0", Version(1), true});
  world.Say(VersionOutcome{"r0", Version(1), false});
  REQUIRE((*orphaned.first)->status.ok());
  REQUIRE(world.coordinator().stale_messages() == before + 3);
}

TEST_CASE("what was staged for sessions that end is let go", "[control][coordinator]") {
  DaemonWorld world;
  Orphaned orphaned(world);
  world.coordinator().CloseSession("r0", "its process has ended");
  REQUIRE(world.log.back() == "staged r1");
  world.coordinator().CloseSession("r1", "its process has ended");
  REQUIRE(world.log.back() == "finish");
}

TEST_CASE("the next version may be received while the last is in doubt", "[control][coordinator]") {
  DaemonWorld world;
  Orphaned orphaned(world);
  world.timers.Advance(seconds(5));
  orphaned.NewLeader();
  const auto first = world.Receive("r0", 2);
  const auto second = world.Receive("r1", 2);
  world.Say(PrepareFor("n1", 2));
  world.Settle();
  world.Say(GoAttempt{AttemptId(1002)});
  world.Settle();
  REQUIRE(world.staged.at("r0") == Version(2));
  REQUIRE(world.coordinator().Waits().size() == 3);   // two calls and one attempt: the old is gone
  world.Say(VersionOutcome{"r0", Version(1), true});  // too late to count
  REQUIRE(world.outcomes.empty());
  world.Say(CommitAttempt{AttemptId(1002)});
  world.Say(FinishReceive{"r0", Version(2), absl::OkStatus(), 0, 0});
  REQUIRE((*first)->status.ok());
}

TEST_CASE("a worker that joins in doubt is told what its leader knows", "[control][coordinator]") {
  DaemonWorld world;
  world.registers = false;
  world.coordinator().OnLeaderConnected();
  const auto opened = world.Open("r0", RolloutRank("engine0", 0, 2, "n1"), 2,
                                 HeldBefore{Version(4), MemoryState::kInDoubt, AttemptId(9)});
  const RegisterWorker call = world.Take<RegisterWorker>().back();
  REQUIRE(call.memory == MemoryState::kInDoubt);
  REQUIRE(call.held_version == Version(4));
  REQUIRE(call.attempt == AttemptId(9));
  SECTION("known at once") {
    world.Say(VersionOutcome{"r0", Version(4), true});
    world.Say(WorkerRegistered{"r0", absl::OkStatus()});
    REQUIRE(opened->status->ok());
    REQUIRE(opened->memory == MemoryState::kValid);
  }
  SECTION("known later") {
    world.Say(WorkerRegistered{"r0", absl::OkStatus()});
    REQUIRE(opened->memory == MemoryState::kInDoubt);
    world.Say(VersionOutcome{"r0", Version(4), false});
    REQUIRE(world.outcomes.at("r0") == std::pair{Version(4), false});
  }
}

TEST_CASE("a trainer's daemon tells the next leader of what was published and committed",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  world.coordinator().OnLeaderConnected();
  world.Open("t0", test::TrainerRank(0, 2, "n0"), 2);
  world.Open("t1", test::TrainerRank(1, 2, "n0"), 2);
  world.Publish("t0", 1);
  world.Publish("t1", 1);
  world.Say(PrepareFor("n0", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  world.Say(CommitAttempt{kAttempt});
  world.Settle();
  world.Take<RegisterWorker>();
  world.coordinator().OnLeaderLost(absl::UnavailableError("connection reset"));
  world.coordinator().OnLeaderConnected();
  for (const RegisterWorker& call : world.Take<RegisterWorker>()) {
    REQUIRE(call.held_version == Version(1));
    REQUIRE(call.commits.size() == 1);
    REQUIRE(call.commits.front().group == "engine0");
    REQUIRE(call.commits.front().version == Version(1));
  }
}

}  // namespace
}  // namespace wb
