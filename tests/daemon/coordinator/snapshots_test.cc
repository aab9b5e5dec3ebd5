#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "planner/model/culprit.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/daemon_world.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::DaemonWorld;
using test::PrepareFor;
using test::Text;
using test::TrainerRank;

const AttemptId kAttempt(1001);
using Log = std::vector<std::string>;

/// The trainers on n0, of which t0 publishes snapshots.
void OpenTrainers(DaemonWorld& world) {
  world.coordinator().OnLeaderConnected();
  REQUIRE(world.OpenForSnapshots("t0", TrainerRank(0, 2, "n0"), 2)->status->ok());
  REQUIRE(world.Open("t1", TrainerRank(1, 2, "n0"), 2)->status->ok());
}

/// Where the streams from a trainer's rank are read.
std::vector<MemoryRef> SourcesOf(const AttemptWork& work, std::int32_t rank) {
  std::vector<MemoryRef> sources;
  for (const OutStream& out : work.out) {
    if (SourceRank(out.stream_number) != rank) continue;
    sources.push_back({out.source.regions.at(0), out.source.offsets.at(0), 0});
  }
  return sources;
}

TEST_CASE("a snapshot is copied, then the client hears of it, then the leader of the version",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  const auto publish = world.PublishSnapshot("t0", 1);
  REQUIRE(world.log == Log{"snapshot"});
  REQUIRE(world.Take<PublishVersion>().empty());
  REQUIRE_THAT(world.coordinator().Waits().at(0),
               Contains("policy/0 is waiting in Publish of version 1 for its snapshot"));
  const SnapshotWork work = world.snapshots.begin()->second;
  REQUIRE(work.parts.size() == 1);
  REQUIRE(work.parts[0].from == MemoryRef{RegionId(1), 64, 128});
  REQUIRE(work.parts[0].to == RegionId(2));

  world.timers.Advance(milliseconds(250));
  world.Settle();
  REQUIRE(world.log == Log{"snapshot", "taken t0"});  // DaemonWorld checks the order
  REQUIRE(world.copied.at("t0") == Version(1));
  const std::vector<PublishVersion> told = world.Take<PublishVersion>();
  REQUIRE(told.size() == 1);
  REQUIRE(told[0].snapshot_seconds == 0.25);
  REQUIRE(told[0].options.label == "step");
  REQUIRE_FALSE(publish->has_value());

  world.Say(FinishPublish{"t0", Version(1), absl::OkStatus(), {}, 1, 2});
  REQUIRE((*publish)->status.ok());
  REQUIRE((*publish)->snapshot_seconds == 0.25);
  REQUIRE(world.timers.pending() == 0);
  REQUIRE(world.coordinator().stale_messages() == 0);
}

TEST_CASE("a version's deliveries are fed from its snapshot, others from the memory",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  const auto bound = [&](std::uint64_t version) {
    world.Settle();
    world.Say(PrepareFor("n0", version));
    return world.works.at(AttemptId(1000 + version));
  };
  const auto over = [&](std::uint64_t version) {
    world.Settle();
    world.Say(AbortAttempt{AttemptId(1000 + version), absl::AbortedError("enough")});
    world.Settle();
    world.Say(FinishPublish{"t0", Version(version), absl::OkStatus(), {}, 0, 0});
  };
  world.PublishSnapshot("t0", 1);
  const AttemptWork first = bound(1);
  for (const MemoryRef& source : SourcesOf(first, 0))
    REQUIRE(source == MemoryRef{RegionId(2), 0, 0});
  for (const MemoryRef& source : SourcesOf(first, 1)) {
    REQUIRE(source == MemoryRef{RegionId(3), 64, 0});
  }
  over(1);
  const auto in_place = world.Publish("t0", 2);
  const AttemptWork second = bound(2);
  REQUIRE(SourcesOf(second, 0).at(0) == MemoryRef{RegionId(1), 64, 0});
  over(2);
  REQUIRE((*in_place)->snapshot_seconds == 0);
  REQUIRE(world.log.front() == "snapshot");
  REQUIRE(std::count(world.log.begin(), world.log.end(), "snapshot") == 1);
}

TEST_CASE("a snapshot of who has not joined for one is refused by name", "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  const auto publish = world.PublishSnapshot("t1", 1);
  REQUIRE((*publish)->status.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(Text((*publish)->status) ==
          "Publish of version 1 by policy/1: it has not joined for snapshots");
  REQUIRE(world.log.empty());
  REQUIRE(world.timers.pending() == 0);
}

TEST_CASE("a second Publish while the snapshot is copied is refused, and changes nothing",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  world.PublishSnapshot("t0", 1);
  const auto second = world.PublishSnapshot("t0", 2);
  REQUIRE(Text((*second)->status) == "policy/0 is inside Publish of version 1 already");
  world.Settle();
  REQUIRE(world.copied.at("t0") == Version(1));
}

TEST_CASE("a snapshot waits until nothing reads the one before", "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  world.PublishSnapshot("t0", 1);
  world.Settle();
  world.Say(PrepareFor("n0", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  world.ends = false;
  world.Say(CommitAttempt{kAttempt});
  world.Say(FinishPublish{"t0", Version(1), absl::OkStatus(), {}, 0, 0});
  world.timers.Advance(milliseconds(800));  // the answer is kept no longer
  const auto publish = world.PublishSnapshot("t0", 2, seconds(2));
  REQUIRE(world.log.back() == "finish");
  SECTION("it begins with the attempt's end") {
    world.coordinator().OnEnded(kAttempt);
    REQUIRE(world.log.back() == "snapshot");
  }
  SECTION("an attempt that does not end costs the version, and no memory is in danger") {
    world.timers.Advance(milliseconds(2799));
    REQUIRE_FALSE(publish->has_value());
    world.timers.Advance(milliseconds(1));
    REQUIRE(Text((*publish)->status) ==
            "Publish of version 2 by policy/0: its snapshot was not taken within 2.0 s");
  }
}

TEST_CASE("a deadline that passes during the copy ends it, and names the stage",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  world.copies = false;
  const auto publish = world.PublishSnapshot("t0", 1, seconds(2));
  world.timers.Advance(seconds(2));
  REQUIRE(world.log == Log{"snapshot", "drop"});
  REQUIRE_FALSE(publish->has_value());  // the memory is still read
  std::string warning;
  SECTION("the copy ends") {
    world.Settle();
  }
  SECTION("it ended just then") {
    world.coordinator().OnSnapshot(world.snapshots.begin()->first, absl::OkStatus());
    world.Settle();
  }
  SECTION("it does not: the answer warns") {
    world.timers.Advance(milliseconds(800));
    warning = "; memory may still be read";
    REQUIRE(publish->has_value());
    world.Settle();  // what comes late meets nobody
  }
  REQUIRE((*publish)->status.code() == absl::StatusCode::kDeadlineExceeded);
  REQUIRE(Text((*publish)->status) ==
          "Publish of version 1 by policy/0: its snapshot was not taken within 2.0 s" + warning);
  const std::vector<Culprit> culprits = CulpritsOf((*publish)->status);
  REQUIRE(culprits.size() == 1);
  REQUIRE(culprits[0].node == "n0");
  REQUIRE(culprits[0].stage == "snapshot");
  // Ranks that have published the version need not wait for this one.
  const std::vector<GiveUpVersion> told = world.Take<GiveUpVersion>();
  REQUIRE(told.size() == 1);
  REQUIRE(told[0].reason == "its snapshot was not taken within 2.0 s");
  REQUIRE(world.copied.empty());
  REQUIRE(world.Take<PublishVersion>().empty());
  REQUIRE(world.timers.pending() == 0);
}

TEST_CASE("a snapshot that fails fails the Publish, and the other ranks hear of it",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  world.copies = false;
  const auto publish = world.PublishSnapshot("t0", 1);
  world.coordinator().OnSnapshot(world.snapshots.begin()->first,
                                 absl::NotFoundError("memory of device 3"));
  REQUIRE((*publish)->status.code() == absl::StatusCode::kNotFound);
  REQUIRE(Text((*publish)->status) ==
          "Publish of version 1 by policy/0: its snapshot failed: memory of device 3");
  REQUIRE(world.Take<GiveUpVersion>().at(0).reason == "its snapshot failed: memory of device 3");
  REQUIRE(world.log == Log{"snapshot"});
  world.copies = true;
  world.PublishSnapshot("t0", 2);
  world.Settle();
  REQUIRE(world.copied.at("t0") == Version(2));
}

TEST_CASE("a leader that is lost during the copy ends it: no other hears of the version",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  const auto publish = world.PublishSnapshot("t0", 1);
  world.coordinator().OnLeaderLost(absl::UnavailableError("gone"));
  REQUIRE(world.log == Log{"snapshot", "drop"});
  REQUIRE_FALSE(publish->has_value());
  world.coordinator().OnLeaderConnected();
  world.Settle();
  REQUIRE((*publish)->status.code() == absl::StatusCode::kUnavailable);
  REQUIRE_THAT(Text((*publish)->status), Contains("Publish of version 1 by policy/0"));
  REQUIRE(world.copied.empty());
  REQUIRE(world.Take<PublishVersion>().empty());
  world.PublishSnapshot("t0", 2);
  world.Settle();
  REQUIRE(world.copied.at("t0") == Version(2));
}

TEST_CASE("a leader that is lost after the copy leaves the outcome unknown, the memory free",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  OpenTrainers(world);
  const auto publish = world.PublishSnapshot("t0", 1);
  world.Settle();
  world.Say(PrepareFor("n0", 1));
  world.Settle();
  world.ends = false;
  world.coordinator().OnLeaderLost(absl::UnavailableError("gone"));
  world.timers.Advance(milliseconds(800));
  REQUIRE((*publish)->status.code() == absl::StatusCode::kUnavailable);
  REQUIRE_THAT(Text((*publish)->status), Contains("outcome unknown"));
  REQUIRE_THAT(Text((*publish)->status), !Contains("memory may still be read"));
}

TEST_CASE("a session that is closed during the copy keeps its memory until that has ended",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  world.unmaps = false;
  bool released = false;
  world.on_released = [&released] { released = true; };
  OpenTrainers(world);
  const auto publish = world.PublishSnapshot("t0", 1);
  world.coordinator().CloseSession("t0", "has ended");
  REQUIRE((*publish)->status.code() == absl::StatusCode::kCancelled);
  REQUIRE(world.log == Log{"snapshot", "drop"});
  REQUIRE(world.removals.size() == 2);  // its memory, and the snapshot's
  world.Settle();
  REQUIRE(world.copied.empty());
  for (const auto& removed : world.removals) {
    REQUIRE_FALSE(released);
    removed();
  }
  REQUIRE(released);
}

}  // namespace
}  // namespace wb
