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
using test::OpenEngine;
using test::PrepareFor;
using test::RolloutRank;
using test::Text;
using test::TrainerRank;

const AttemptId kAttempt(1001);

TEST_CASE("WaitForVersion returns what is on offer, now or later", "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  const auto early = world.Wait("r0", 2);
  world.Say(VersionOffered{"gqa", "engine0", Version(1)});
  REQUIRE_FALSE(early->has_value());
  REQUIRE(***world.Wait("r1", 1) == Version(1));
  world.Say(VersionOffered{"gqa", "engine1", Version(5)});
  world.Say(VersionOffered{"other", "engine0", Version(5)});
  REQUIRE_FALSE(early->has_value());
  world.Say(VersionOffered{"gqa", "engine0", Version(3)});
  REQUIRE(***early == Version(3));
}

TEST_CASE("WaitForVersion does not return a version that is over", "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  world.Say(VersionOffered{"gqa", "engine0", Version(1)});
  SECTION("it was received") {
    const auto receive = world.Receive("r0", 1);
    world.Say(FinishReceive{"r0", Version(1), absl::OkStatus(), 0, 0});
    REQUIRE((*receive)->status.ok());
    REQUIRE_FALSE(world.Wait("r0", 1)->has_value());
  }
  SECTION("it failed: the deadline says why") {
    world.Say(VersionFailed{"gqa", "engine0", Version(1), absl::UnavailableError("policy/1 left")});
    const auto wait = world.Wait("r0", 1, seconds(3));
    REQUIRE_FALSE(wait->has_value());
    world.timers.Advance(seconds(3));
    REQUIRE((*wait)->status().code() == absl::StatusCode::kDeadlineExceeded);
    REQUIRE(Text((*wait)->status()) ==
            "no version of 1 or above was offered to engine0 of job gqa within 3.0 s; version 1 "
            "failed: policy/1 left");
  }
}

TEST_CASE("an offer ends with the group's last rank here: its successor waits for the next",
          "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  const auto trainer = world.Open("t0", TrainerRank(0, 2, "n1"), 2);  // the job goes on here
  REQUIRE(trainer->status->ok());
  world.Say(VersionOffered{"gqa", "engine0", Version(1)});
  world.coordinator().CloseSession("r0", "its worker died");
  REQUIRE(world.Open("r2", RolloutRank("engine0", 0, 2, "n1"), 2)->status->ok());
  REQUIRE(***world.Wait("r2", 1) == Version(1));  // r1 would have heard of its end
  world.coordinator().CloseSession("r1", "its worker died");
  world.coordinator().CloseSession("r2", "its worker died");
  REQUIRE(world.Open("r3", RolloutRank("engine0", 0, 2, "n1"), 2)->status->ok());
  const auto wait = world.Wait("r3", 1);
  REQUIRE_FALSE(wait->has_value());
  world.Say(VersionOffered{"gqa", "engine0", Version(1)});
  REQUIRE(***wait == Version(1));
}

TEST_CASE("a Receive past its deadline gives up and says what the leader says",
          "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  const auto receive = world.Receive("r0", 1, seconds(2));
  world.timers.Advance(seconds(2));
  const std::vector<GiveUpVersion> told = world.Take<GiveUpVersion>();
  REQUIRE(told.size() == 1);
  REQUIRE(told.front().version == Version(1));
  REQUIRE(told.front().reason == "its deadline of 2.0 s has passed");
  REQUIRE_FALSE(receive->has_value());
  world.Say(
      FinishReceive{"r0", Version(1), absl::DeadlineExceededError("engine0/1 is late"), 2, 0});
  REQUIRE(Text((*receive)->status) == "engine0/1 is late");
  REQUIRE(world.timers.pending() == 0);
}

TEST_CASE("a call whose leader is silent ends after the grace, and warns of its memory",
          "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  const auto receive = world.Receive("r0", 1, seconds(2));
  const auto other = world.Receive("r1", 1, seconds(60));
  world.stages = false;
  SECTION("nothing moves yet") {
    world.timers.Advance(milliseconds(2800));
    REQUIRE(Text((*receive)->status) ==
            "Receive of version 1 by engine0/0 did not end within 2.0 s, and the leader has not "
            "answered 0.8 s later");
    REQUIRE(world.log.empty());
  }
  SECTION("bytes are landing") {
    world.Say(PrepareFor("n1", 1));
    world.Settle();
    world.Say(GoAttempt{kAttempt});
    world.timers.Advance(milliseconds(2799));
    REQUIRE_FALSE(receive->has_value());
    world.timers.Advance(milliseconds(1));
    REQUIRE((*receive)->status.code() == absl::StatusCode::kDeadlineExceeded);
    REQUIRE_THAT(Text((*receive)->status), Contains("; memory may still change"));
    REQUIRE(world.log.back() == "abort");
    REQUIRE(world.Take<AttemptFailed>().size() == 1);
  }
  REQUIRE_FALSE(other->has_value());
}

TEST_CASE("a staged Receive is never aborted by its deadline: its outcome is in doubt",
          "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  const auto receive = world.Receive("r0", 1, seconds(2));
  world.Receive("r1", 1, seconds(60));
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  world.timers.Advance(milliseconds(2800));
  REQUIRE((*receive)->status.code() == absl::StatusCode::kUnavailable);
  REQUIRE(Text((*receive)->status) ==
          "staged version 1, outcome unknown: the leader has not decided in time");
  REQUIRE((*receive)->in_doubt);
  REQUIRE(world.log.back() == "staged r1");
  REQUIRE(world.Take<AttemptFailed>().empty());
  // The leader's word still counts, and the client hears of it.
  world.Say(CommitAttempt{kAttempt});
  REQUIRE(world.Take<AttemptCommitted>().size() == 1);
  REQUIRE(world.outcomes.at("r0") == std::pair{Version(1), true});
  REQUIRE(world.outcomes.count("r1") == 0);  // is in Receive, and gets its answer
}

TEST_CASE("a Publish past its deadline ends with the leader's word", "[control][coordinator]") {
  DaemonWorld world("n0");
  world.coordinator().OnLeaderConnected();
  world.Open("t0", TrainerRank(0, 2, "n0"), 2);
  const auto publish = world.Publish("t0", 1, seconds(1));
  world.timers.Advance(seconds(1));
  REQUIRE(world.Take<GiveUpVersion>().size() == 1);
  world.Say(
      FinishPublish{"t0", Version(1), absl::DeadlineExceededError("policy/1 is late"), {}, 1, 0});
  REQUIRE(Text((*publish)->status) == "policy/1 is late");
}

TEST_CASE("a lost leader ends every call, and what is staged differently from what is not",
          "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  const auto first = world.Receive("r0", 1);
  const auto second = world.Receive("r1", 1);
  const auto wait = world.Wait("r0", 2);
  const auto lose = [&] {
    world.coordinator().OnLeaderLost(absl::UnavailableError("connection reset"));
    REQUIRE((*wait)->status().code() == absl::StatusCode::kUnavailable);
    REQUIRE(world.coordinator().sessions() == 2);
    REQUIRE((*world.Wait("r1", 2))->status().code() == absl::StatusCode::kUnavailable);
    REQUIRE_THAT(world.coordinator().Waits().at(0), Contains("no leader"));
  };
  SECTION("nothing is under way") {
    lose();
    REQUIRE((*first)->status.code() == absl::StatusCode::kUnavailable);
    REQUIRE((*second)->status.code() == absl::StatusCode::kUnavailable);
    REQUIRE(Text((*first)->status) ==
            "Receive of version 1 by engine0/0: outcome unknown: daemon n1 has no leader since "
            "0.0 s: connection reset");
  }
  SECTION("bytes are landing: the answer waits until they do no more") {
    world.stages = false;
    world.Say(PrepareFor("n1", 1));
    world.Settle();
    world.Say(GoAttempt{kAttempt});
    lose();
    REQUIRE(world.log.back() == "abort");
    REQUIRE_FALSE(first->has_value());
    world.Settle();
    REQUIRE((*first)->status.code() == absl::StatusCode::kUnavailable);
    REQUIRE_THAT(Text((*second)->status), !Contains("memory may still change"));
    world.coordinator().OnLeaderConnected();
    REQUIRE(world.Take<RegisterWorker>().back().memory == MemoryState::kInvalid);
  }
  SECTION("bytes are landing and do not stop: the answer says so") {
    world.stages = world.ends = false;
    world.Say(PrepareFor("n1", 1));
    world.Settle();
    world.Say(GoAttempt{kAttempt});
    lose();
    world.timers.Advance(milliseconds(800));
    REQUIRE_THAT(Text((*second)->status), Contains("memory may still change"));
  }
  SECTION("all has landed, the decision is not known") {
    world.Say(PrepareFor("n1", 1));
    world.Settle();
    world.Say(GoAttempt{kAttempt});
    world.Settle();
    lose();
    REQUIRE_FALSE(first->has_value());
    REQUIRE(world.log.back() == "staged r1");
    world.timers.Advance(seconds(5));
    REQUIRE_THAT(Text((*first)->status), Contains("staged version 1, outcome unknown"));
    REQUIRE((*first)->in_doubt);
    REQUIRE(world.log.back() == "staged r1");  // kept: the next leader may say commit
    world.coordinator().OnLeaderConnected();
    const RegisterWorker replayed = world.Take<RegisterWorker>().back();
    REQUIRE(replayed.memory == MemoryState::kInDoubt);
    REQUIRE(replayed.held_version == Version(1));
    REQUIRE(replayed.attempt == kAttempt);
  }
  SECTION("the commit was heard: that is OK") {
    world.Say(PrepareFor("n1", 1));
    world.Settle();
    world.Say(GoAttempt{kAttempt});
    world.Settle();
    world.Say(CommitAttempt{kAttempt});
    lose();
    REQUIRE((*first)->status.ok());
    REQUIRE((*first)->bytes_received == 128);
  }
  REQUIRE(first->has_value());
}

TEST_CASE("a Receive whose commit was heard is OK, however late the leader's answer",
          "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  const auto receive = world.Receive("r0", 1, seconds(2));
  world.Receive("r1", 1);
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  world.Say(CommitAttempt{kAttempt});
  world.timers.Advance(milliseconds(2800));
  REQUIRE((*receive)->status.ok());
  REQUIRE((*receive)->bytes_received == 128);
}

TEST_CASE("a late answer is not taken for the answer to the next call", "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  world.Receive("r0", 1, seconds(2));
  world.timers.Advance(milliseconds(2800));
  const auto second = world.Receive("r0", 1);
  world.Say(FinishReceive{"r0", Version(1), absl::DeadlineExceededError("of the first"), 0, 0});
  REQUIRE_FALSE(second->has_value());
  world.Say(FinishReceive{"r0", Version(1), absl::UnavailableError("of the second"), 0, 0});
  REQUIRE(Text((*second)->status) == "of the second");
}

TEST_CASE("calls that cannot be are answered at once", "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  REQUIRE((*world.Receive("nobody", 1))->status.code() == absl::StatusCode::kNotFound);
  const auto first = world.Receive("r0", 1);
  const auto second = world.Receive("r0", 1);
  REQUIRE((*second)->status.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Text((*second)->status) == "engine0/0 is inside Receive of version 1 already");
  REQUIRE_FALSE(first->has_value());
  world.registers = false;
  world.Open("r9", RolloutRank("engine1", 0, 1, "n1"), 1);
  REQUIRE_THAT(Text((*world.Receive("r9", 1))->status), Contains("has not joined yet"));
}

TEST_CASE("an answer may call again from inside", "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  std::optional<absl::StatusOr<Version>> second;
  world.coordinator().WaitForVersion(
      "r0", Version(1), world.In(seconds(5)), [&](const absl::StatusOr<Version>& version) {
        REQUIRE(*version == Version(1));
        world.coordinator().WaitForVersion("r0", Version(1), world.In(seconds(5)),
                                           [&](absl::StatusOr<Version> again) { second = again; });
      });
  world.Say(VersionOffered{"gqa", "engine0", Version(1)});
  REQUIRE(**second == Version(1));
}

TEST_CASE("an answer to a call that is over is dropped and counted", "[control][coordinator]") {
  DaemonWorld world;
  OpenEngine(world);
  world.Say(FinishReceive{"r0", Version(1), absl::OkStatus(), 0, 0});
  world.Say(FinishPublish{"r0", Version(1), absl::OkStatus(), {}, 0, 0});
  const auto receive = world.Receive("r0", 2);
  world.Say(FinishReceive{"r0", Version(1), absl::OkStatus(), 0, 0});
  REQUIRE_FALSE(receive->has_value());
  REQUIRE(world.coordinator().stale_messages() == 3);
}

}  // namespace
}  // namespace wb
