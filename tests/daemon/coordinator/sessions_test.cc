#include <chrono>
#include <string>
#include <vector>

#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/daemon_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::DaemonWorld;
using test::RolloutRank;
using test::Text;

TEST_CASE("a session opens its regions, registers, and is answered by the leader's word",
          "[control][coordinator]") {
  DaemonWorld world;
  world.registers = false;
  world.coordinator().OnLeaderConnected();
  Registration registration = RolloutRank("engine0", 1, 2, "n1");
  registration.layout.node.clear();
  const auto opened = world.Open("r1", registration, 2);
  REQUIRE(world.regions.size() == 1);
  const std::vector<RegisterWorker> calls = world.Take<RegisterWorker>();
  REQUIRE(calls.size() == 1);
  REQUIRE(calls.front().session == "r1");
  REQUIRE(calls.front().world_size == 2);
  REQUIRE(calls.front().epoch == Epoch(3));
  REQUIRE(calls.front().registration->layout.node == "n1");
  REQUIRE_FALSE(opened->status.has_value());
  REQUIRE_THAT(world.coordinator().Waits().at(0), Contains("engine0/1 is waiting for the leader"));
  world.Say(WorkerRegistered{"r1", absl::OkStatus()});
  REQUIRE(opened->status->ok());
  REQUIRE(world.coordinator().sessions() == 1);
}

TEST_CASE("a session that the leader refuses leaves nothing behind", "[control][coordinator]") {
  DaemonWorld world;
  world.registers = false;
  world.coordinator().OnLeaderConnected();
  const auto opened = world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
  world.Say(WorkerRegistered{"r1", absl::AlreadyExistsError("rank engine0/1 is taken")});
  REQUIRE(opened->status->code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(world.regions.empty());
  REQUIRE(world.coordinator().sessions() == 0);
  REQUIRE(world.timers.pending() == 0);
}

TEST_CASE("a session waits for a leader until its deadline, then says how long there was none",
          "[control][coordinator]") {
  DaemonWorld world;
  const auto opened = world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
  SECTION("one comes") {
    world.timers.Advance(seconds(4));
    world.coordinator().OnLeaderConnected();
    REQUIRE(opened->status->ok());
  }
  SECTION("none comes") {
    world.timers.Advance(seconds(5));
    REQUIRE(opened->status->code() == absl::StatusCode::kUnavailable);
    REQUIRE(Text(*opened->status) == "daemon n1 has no leader since 5.0 s: not connected yet");
    REQUIRE(world.regions.empty());
  }
  SECTION("one comes and does not answer") {
    world.registers = false;
    world.coordinator().OnLeaderConnected();
    world.timers.Advance(seconds(5));
    REQUIRE(opened->status->code() == absl::StatusCode::kDeadlineExceeded);
    REQUIRE(Text(*opened->status) ==
            "the leader has not answered the registration of engine0/1 within 5.0 s");
    REQUIRE(world.Take<UnregisterWorker>().at(0).session == "r1");
    REQUIRE(world.regions.empty());
  }
}

TEST_CASE("a session that cannot be is refused before anything is opened",
          "[control][coordinator]") {
  DaemonWorld world;
  world.coordinator().OnLeaderConnected();
  REQUIRE(world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2)->status->ok());
  SECTION("its id is taken") {
    const auto again = world.Open("r1", RolloutRank("engine0", 0, 2, "n1"), 2);
    REQUIRE(again->status->code() == absl::StatusCode::kAlreadyExists);
  }
  SECTION("it is of another node") {
    const auto other = world.Open("r0", RolloutRank("engine0", 0, 2, "n5"), 2);
    REQUIRE(Text(*other->status) == "engine0/0 says node n5, this daemon is of node n1");
  }
  SECTION("the daemon drains") {
    world.coordinator().Drain();
    const auto late = world.Open("r0", RolloutRank("engine0", 0, 2, "n1"), 2);
    REQUIRE(late->status->code() == absl::StatusCode::kUnavailable);
    REQUIRE(world.regions.empty());
    return;
  }
  REQUIRE(world.regions.size() == 1);
}

TEST_CASE("closing a session answers its calls, frees its regions and tells the leader",
          "[control][coordinator]") {
  DaemonWorld world;
  world.coordinator().OnLeaderConnected();
  world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
  const auto receive = world.Receive("r1", 1);
  const auto wait = world.Wait("r1", 2);
  world.coordinator().CloseSession("r1", "process ended");
  REQUIRE((*receive)->status.code() == absl::StatusCode::kCancelled);
  REQUIRE((*wait)->status().code() == absl::StatusCode::kCancelled);
  REQUIRE(world.regions.empty());
  REQUIRE(world.Take<UnregisterWorker>().at(0).reason == "process ended");
  REQUIRE(world.coordinator().sessions() == 0);
  REQUIRE(world.timers.pending() == 0);
  world.coordinator().CloseSession("r1", "again");
  REQUIRE(world.Take<UnregisterWorker>().empty());
}

TEST_CASE("a session is released when the last of its regions is unmapped, and once",
          "[control][coordinator]") {
  DaemonWorld world;
  world.coordinator().OnLeaderConnected();
  int released = 0;
  world.on_released = [&] { ++released; };
  SECTION("closed") {
    world.unmaps = false;
    world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
    world.coordinator().CloseSession("r1", "process ended");
    REQUIRE(world.removals.size() == 1);
    REQUIRE(released == 0);
    world.removals.front()();
  }
  SECTION("refused by the leader") {
    world.registers = false;
    world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
    world.Say(WorkerRegistered{"r1", absl::AlreadyExistsError("rank engine0/1 is taken")});
  }
  SECTION("never opened") {
    world.coordinator().Drain();
    world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
  }
  REQUIRE(released == 1);
}

TEST_CASE("the leader's question is answered when the sessions of gone workers are closed",
          "[control][coordinator]") {
  DaemonWorld world;
  world.coordinator().OnLeaderConnected();
  world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
  world.gone.insert("r1");
  world.Say(Heartbeat{});
  const std::vector<ToLeader> told = world.TakeAll();
  REQUIRE(told.size() >= 2);
  REQUIRE(std::get<UnregisterWorker>(told[told.size() - 2]).session == "r1");
  REQUIRE(std::holds_alternative<Heartbeat>(told.back()));
}

TEST_CASE("a new leader is told every session, with what it holds", "[control][coordinator]") {
  DaemonWorld world;
  world.coordinator().OnLeaderConnected();
  for (int rank = 0; rank < 2; ++rank) {
    world.Open("r" + std::to_string(rank), RolloutRank("engine0", rank, 2, "n1"), 2);
    world.Receive("r" + std::to_string(rank), 6);
  }
  world.Say(test::PrepareFor("n1", 6));
  world.Settle();
  world.Say(GoAttempt{AttemptId(1006)});
  world.Settle();
  world.Say(CommitAttempt{AttemptId(1006)});
  world.Take<RegisterWorker>();
  world.coordinator().OnLeaderLost(absl::UnavailableError("connection reset"));
  world.coordinator().OnLeaderConnected();
  const std::vector<RegisterWorker> replayed = world.Take<RegisterWorker>();
  REQUIRE(replayed.size() == 2);
  for (const RegisterWorker& call : replayed) {
    REQUIRE(call.held_version == Version(6));
    REQUIRE(call.memory == MemoryState::kValid);
  }
}

TEST_CASE("a session that a new leader refuses answers its calls with that refusal",
          "[control][coordinator]") {
  DaemonWorld world;
  world.coordinator().OnLeaderConnected();
  world.Open("r1", RolloutRank("engine0", 1, 2, "n1"), 2);
  world.coordinator().OnLeaderLost(absl::UnavailableError("connection reset"));
  world.registers = false;
  world.coordinator().OnLeaderConnected();
  world.Say(WorkerRegistered{"r1", absl::AlreadyExistsError("rank engine0/1 is taken")});
  REQUIRE((*world.Receive("r1", 1))->status.code() == absl::StatusCode::kAlreadyExists);
  REQUIRE(world.coordinator().sessions() == 1);
}

TEST_CASE("drain answers everything and drops all sessions", "[control][coordinator]") {
  DaemonWorld world;
  world.coordinator().OnLeaderConnected();
  for (int rank = 0; rank < 2; ++rank) {
    world.Open("r" + std::to_string(rank), RolloutRank("engine0", rank, 2, "n1"), 2);
  }
  const auto first = world.Receive("r0", 1);
  const auto second = world.Receive("r1", 1);
  world.Say(test::PrepareFor("n1", 1));
  world.Settle();
  world.coordinator().Drain();
  REQUIRE((*first)->status.code() == absl::StatusCode::kCancelled);
  REQUIRE((*second)->status.code() == absl::StatusCode::kCancelled);
  REQUIRE(world.log == std::vector<std::string>{"prepare", "abort"});
  REQUIRE(world.Take<AttemptFailed>().size() == 1);
  REQUIRE(world.Take<UnregisterWorker>().size() == 2);
  REQUIRE(world.coordinator().sessions() == 0);
}

}  // namespace
}  // namespace wb
