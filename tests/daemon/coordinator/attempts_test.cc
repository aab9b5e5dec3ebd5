#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/move/coordinate/held_plan.h"
#include "planner/solve/planner.h"
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
using test::RolloutRank;
using test::Text;
using test::TrainerRank;

/// engine0 of two ranks (sessions r0, r1), both inside Receive of version 1.
struct Receivers {
  explicit Receivers(DaemonWorld& world) {
    test::OpenEngine(world);
    for (const char* session : {"r0", "r1"}) calls.push_back(world.Receive(session, 1));
    world.Take<RegisterWorker>();
  }
  std::vector<DaemonWorld::Pending<ReceiveResult>> calls;
};

const AttemptId kAttempt(1001);

TEST_CASE("receivers are asked before the first byte, and answered after the commit",
          "[control][coordinator]") {
  DaemonWorld world;
  Receivers receivers(world);
  REQUIRE(world.Take<AcceptVersion>().size() == 2);
  world.accepts_go = false;
  world.Say(PrepareFor("n1", 1));
  REQUIRE(world.Take<AttemptPrepared>().empty());
  world.Settle();
  REQUIRE(world.Take<AttemptPrepared>().at(0).attempt == kAttempt);

  world.Say(GoAttempt{kAttempt});
  REQUIRE(world.log == std::vector<std::string>{"prepare", "notice r0", "notice r1"});
  world.notices.at(0).second();
  world.notices.at(0).second();  // twice is once
  REQUIRE(world.log.size() == 3);
  world.notices.at(1).second();
  REQUIRE(world.log.back() == "go");
  world.Settle();
  REQUIRE(world.Take<AttemptStaged>().at(0).bytes == BytesByPath{256, 0, 0});

  world.coordinator().OnMeasured(kAttempt, {{}, {{0, {0, 0.125, 0.0625, 0}}}});
  world.Say(CommitAttempt{kAttempt});
  REQUIRE(world.log.back() == "finish");
  REQUIRE(world.Take<AttemptCommitted>().at(0).attempt == kAttempt);
  REQUIRE_FALSE(receivers.calls[0]->has_value());
  world.Say(FinishReceive{"r0", Version(1), absl::OkStatus(), 0.5, 0.25});
  const ReceiveResult& result = **receivers.calls[0];
  REQUIRE(result.status.ok());
  REQUIRE(result.bytes_received == 128);
  REQUIRE(result.wait_seconds == 0.5);
  REQUIRE(result.move_seconds == 0.25);
  REQUIRE(result.times.wire_seconds == 0.125);
  REQUIRE(result.times.scatter_seconds == 0.0625);
  REQUIRE_FALSE(receivers.calls[1]->has_value());
  world.Settle();
  REQUIRE(world.coordinator().stale_messages() == 0);
}

TEST_CASE("a source moves without asking, and reports what each trainer sent",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  world.coordinator().OnLeaderConnected();
  world.Open("t0", TrainerRank(0, 2, "n0"), 2);
  world.Open("t1", TrainerRank(1, 2, "n0"), 2);
  const auto publish = world.Publish("t0", 1);
  const PublishOptions said = world.Take<PublishVersion>().at(0).options;
  REQUIRE(said.label == "step");
  REQUIRE(said.required_groups == std::set<std::string>{"engine0"});
  world.Say(PrepareFor("n0", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  REQUIRE(world.log == std::vector<std::string>{"prepare", "go"});
  world.Say(CommitAttempt{kAttempt});
  world.Say(
      FinishPublish{"t0", Version(1), absl::OkStatus(), {{"engine0", absl::OkStatus()}}, 1, 2});
  world.Settle();
  REQUIRE((*publish)->status.ok());
  REQUIRE((*publish)->bytes_sent == 128);
  REQUIRE((*publish)->outcomes.size() == 1);
}

TEST_CASE("a publisher is answered when its sends have ended, with what they took",
          "[control][coordinator]") {
  DaemonWorld world("n0");
  world.coordinator().OnLeaderConnected();
  world.Open("t0", TrainerRank(0, 2, "n0"), 2);
  world.Open("t1", TrainerRank(1, 2, "n0"), 2);
  const auto publish = world.Publish("t0", 1);
  world.Say(PrepareFor("n0", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  world.ends = false;
  world.Say(CommitAttempt{kAttempt});
  world.Say(FinishPublish{"t0", Version(1), absl::OkStatus(), {}, 1, 2});
  REQUIRE_FALSE(publish->has_value());

  SECTION("the mover says that it is over") {
    // Rank 1 is t1, and destinations are not t0's business.
    world.coordinator().OnMeasured(kAttempt,
                                   {{{0, {1, 2, 0, 3}}, {1, {9, 9, 9, 9}}}, {{0, {8, 8, 8, 8}}}});
    world.coordinator().OnMeasured(kAttempt, {{{0, {4, 1, 0, 3}}}, {}});
    world.coordinator().OnEnded(kAttempt);
    REQUIRE(publish->has_value());
    REQUIRE((*publish)->times.pack_seconds == 4);
    REQUIRE((*publish)->times.wire_seconds == 2);
    REQUIRE((*publish)->times.copy_seconds == 3);
  }
  SECTION("it does not: the answer is kept no longer than the grace") {
    world.timers.Advance(std::chrono::milliseconds(799));
    REQUIRE_FALSE(publish->has_value());
    world.timers.Advance(std::chrono::milliseconds(1));
    REQUIRE(publish->has_value());
  }
  SECTION("the leader is lost meanwhile: it has spoken") {
    world.coordinator().OnLeaderLost(absl::UnavailableError("gone"));
    world.coordinator().OnEnded(kAttempt);
    REQUIRE(publish->has_value());
  }
  REQUIRE((*publish)->status.ok());
  REQUIRE((*publish)->bytes_sent == 128);
  REQUIRE((*publish)->wait_seconds == 1);
}

TEST_CASE("both ends bind the same streams to their own memory", "[control][coordinator]") {
  DaemonWorld destination;
  Receivers receivers(destination);
  destination.Say(PrepareFor("n1", 1));
  DaemonWorld source("n0");
  source.coordinator().OnLeaderConnected();
  source.Open("t0", TrainerRank(0, 2, "n0"), 2);
  source.Open("t1", TrainerRank(1, 2, "n0"), 2);
  source.Say(PrepareFor("n0", 1));

  const AttemptWork& in = destination.works.at(kAttempt);
  const AttemptWork& out = source.works.at(kAttempt);
  REQUIRE(in.version == Version(1));
  REQUIRE(in.job == "gqa");
  REQUIRE(in.group == "engine0");
  REQUIRE(in.out.empty());
  REQUIRE(in.copies.empty());
  REQUIRE(in.in.size() == 4);
  REQUIRE(out.out.size() == 4);
  REQUIRE(out.peers.at(0).node == "n1");
  std::set<std::uint32_t> numbers;
  for (const InStream& stream : in.in) {
    numbers.insert(stream.stream_number);
    REQUIRE(stream.peer_node == "n0");
    REQUIRE(stream.destination.regions.size() == 1);
    REQUIRE(destination.regions.contains(stream.destination.regions[0]));
    REQUIRE(stream.destination.offsets == std::vector<std::uint64_t>{64});
    const auto same = std::find_if(out.out.begin(), out.out.end(), [&](const OutStream& other) {
      return other.stream_number == stream.stream_number;
    });
    REQUIRE(same != out.out.end());
    REQUIRE(same->source.stream.bytes == stream.destination.stream.bytes);
    REQUIRE(same->source.stream.chunks.size() == stream.destination.stream.chunks.size());
  }
  REQUIRE(numbers == std::set<std::uint32_t>{0, 1, 1U << 16, (1U << 16) + 1});
}

TEST_CASE("a daemon that serves both ends copies region to region", "[control][coordinator]") {
  DaemonWorld world("n1");
  world.coordinator().OnLeaderConnected();
  std::vector<Registration> all{TrainerRank(0, 1, "n1"), RolloutRank("engine0", 0, 1, "n1")};
  world.Open("t0", all[0], 1);
  world.Open("r0", all[1], 1);
  world.Receive("r0", 1);
  const auto job = std::get<Job>(MakeJob(all));
  const auto plan = std::get<Plan>(Solve(job));
  PrepareAttempt message{kAttempt, "gqa", "engine0", Version(1), {}, {}, {}, {}};
  message.plan = MakePlanPart(job, plan, "engine0", "n1");
  message.fingerprint = message.plan->fingerprint;
  const WorkerGeneration generation{Incarnation(5), Epoch(3)};
  message.workers = {{"policy/0", generation}, {"engine0/0", generation}};
  world.Say(message);
  const AttemptWork& work = world.works.at(kAttempt);
  REQUIRE(work.copies.size() == 1);
  REQUIRE(work.copies[0].source.regions != work.copies[0].destination.regions);
  REQUIRE(work.in.empty());
  REQUIRE(work.out.empty());
}

TEST_CASE("nothing stale is prepared", "[control][coordinator]") {
  DaemonWorld world;
  Receivers receivers(world);
  PrepareAttempt message = PrepareFor("n1", 1);
  const auto refused = [&] {
    world.Say(message);
    const std::vector<AttemptFailed> failures = world.Take<AttemptFailed>();
    REQUIRE(failures.size() == 1);
    REQUIRE(failures.front().attempt == kAttempt);
    REQUIRE(failures.front().status.code() == absl::StatusCode::kFailedPrecondition);
    REQUIRE(world.log.empty());
    return Text(failures.front().status);
  };
  SECTION("another epoch: both numbers are named") {
    message.workers["engine0/1"].epoch = Epoch(4);
    REQUIRE(refused() ==
            "worker engine0/1 is registered with epoch 3, the attempt speaks of epoch 4");
  }
  SECTION("another start of the worker: both numbers are named") {
    message.workers["engine0/1"].incarnation = Incarnation(6);
    REQUIRE(refused() == "worker engine0/1 has incarnation 5, the attempt speaks of incarnation 6");
  }
  SECTION("a worker that is not here") {
    message.workers["engine0/7"] = {Incarnation(5), Epoch(3)};
    REQUIRE(refused() == "worker engine0/7 has no session on node n1");
  }
  SECTION("a worker of the plan that the leader gave no epoch of") {
    message.workers.erase("engine0/1");
    REQUIRE_THAT(refused(), Contains("the plan speaks of worker engine0/1"));
  }
  SECTION("a plan that was never sent") {
    message.plan.reset();
    REQUIRE(refused() == "node n1 holds no plan of job gqa for engine0");
  }
  SECTION("another plan than the one that is held") {
    const Fingerprint held = message.fingerprint;
    message.fingerprint = Fingerprint(held.value() + 1);
    REQUIRE_THAT(refused(), Contains("holds plan " + std::to_string(held.value())));
  }
  SECTION("a peer without address") {
    message.peers.clear();
    REQUIRE_THAT(refused(), Contains("no address of node n0"));
  }
  SECTION("a tensor that has another shape in the plan") {
    message.plan->tensors[0].shape = {8, 9};
    REQUIRE_THAT(refused(), Contains("w"));
  }
  SECTION("a rank that is not inside Receive") {
    world.Say(FinishReceive{"r1", Version(1), absl::UnavailableError("over"), 0, 0});
    REQUIRE(refused() == "engine0/1 is not inside Receive of version 1");
  }
  // The leader aborts what it hears failed; nothing of it is here.
  world.Say(AbortAttempt{kAttempt, absl::InternalError("failed")});
  REQUIRE(world.Take<AttemptAborted>().size() == 1);
}

TEST_CASE("the second version lowers nothing and needs no plan sent", "[control][coordinator]") {
  std::map<WorkerName, LocalWorker> workers;
  for (int rank = 0; rank < 2; ++rank) {
    LocalWorker local;
    local.session = "r" + std::to_string(rank);
    local.incarnation = Incarnation(5);
    local.epoch = Epoch(3);
    local.registration =
        std::make_shared<const Registration>(RolloutRank("engine0", rank, 2, "n1"));
    local.regions = {RegionId(1)};
    local.offsets = {0};
    workers[local.registration->layout.name] = local;
  }
  PrepareAttempt message = PrepareFor("n1", 1);
  HeldPlan plan(*message.plan, "n1", kDefaultChunkBytes);
  REQUIRE(plan.Bind(message, workers).ok());
  REQUIRE(plan.lowered() == 4);
  REQUIRE(plan.Bind(message, workers).ok());
  REQUIRE(plan.lowered() == 4);
  // A rank that came back has new memory: its streams, and only its, are lowered again.
  workers.at({"engine0", 1}).session = "r2";
  REQUIRE(plan.Bind(message, workers).ok());
  REQUIRE(plan.lowered() == 6);
  REQUIRE(plan.BytesOf({"engine0", 0}).received == 128);
  REQUIRE(plan.BytesOf({"policy", 1}).sent == 128);
  REQUIRE(plan.BytesOf({"engine9", 0}).received == 0);

  DaemonWorld world;
  Receivers receivers(world);
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.Settle();
  world.Say(CommitAttempt{kAttempt});
  for (const char* session : {"r0", "r1"}) {
    world.Say(FinishReceive{session, Version(1), absl::OkStatus(), 0, 0});
    world.Receive(session, 2);
  }
  world.Say(PrepareFor("n1", 2, false));
  REQUIRE(world.works.at(AttemptId(1002)).in.size() == 4);
}

TEST_CASE("plans that the leader says are not needed are let go of", "[control][coordinator]") {
  DaemonWorld world;
  Receivers receivers(world);
  world.Say(PrepareFor("n1", 1));
  PrepareAttempt other = PrepareFor("n1", 2);
  other.group = "engine1";
  other.forget = {"engine0"};
  world.Say(other);
  world.Take<AttemptFailed>();
  PrepareAttempt without = PrepareFor("n1", 3, false);
  world.Say(without);
  const std::vector<AttemptFailed> failures = world.Take<AttemptFailed>();
  REQUIRE(failures.size() == 1);
  REQUIRE(Text(failures[0].status) == "node n1 holds no plan of job gqa for engine0");
}

TEST_CASE("a client that does not take the go notice fails the attempt, by name",
          "[control][coordinator]") {
  DaemonWorld world;
  Receivers receivers(world);
  world.accepts_go = false;
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.notices.at(0).second();
  world.timers.Advance(seconds(2));
  const std::vector<AttemptFailed> failures = world.Take<AttemptFailed>();
  REQUIRE(Text(failures.at(0).status) ==
          "engine0/1 did not accept the go notice of version 1 within 2.0 s");
  world.notices.at(1).second();  // too late: nothing moves
  REQUIRE(world.log == std::vector<std::string>{"prepare", "notice r0", "notice r1"});
  world.Say(AbortAttempt{kAttempt, failures.at(0).status});
  world.Settle();
  REQUIRE(world.Take<AttemptAborted>().size() == 1);
}

TEST_CASE("no byte lands for a rank that left Receive between prepare and go",
          "[control][coordinator]") {
  DaemonWorld world;
  Receivers receivers(world);
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  SECTION("its deadline passed") {
    world.timers.Advance(seconds(10));
    REQUIRE(world.Take<GiveUpVersion>().size() == 2);
  }
  SECTION("its session ended") {
    world.coordinator().CloseSession("r0", "process ended");
  }
  world.Say(GoAttempt{kAttempt});
  REQUIRE(world.log == std::vector<std::string>{"prepare"});
  REQUIRE(world.Take<AttemptFailed>().size() == 1);
}

TEST_CASE("a failure is told once, and its end when nothing moves any more",
          "[control][coordinator]") {
  DaemonWorld world;
  Receivers receivers(world);
  world.stages = false;
  world.ends = false;
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  world.coordinator().OnFailed(kAttempt, absl::DataLossError("checksum of chunk 3"));
  world.coordinator().OnFailed(kAttempt, absl::InternalError("and another"));
  REQUIRE(Text(world.Take<AttemptFailed>().at(0).status) == "checksum of chunk 3");
  world.Say(AbortAttempt{kAttempt, absl::DataLossError("failed")});
  world.Say(AbortAttempt{kAttempt, absl::DataLossError("failed")});
  REQUIRE(world.log.back() == "abort");
  REQUIRE(world.Take<AttemptAborted>().empty());
  world.coordinator().OnEnded(kAttempt);
  REQUIRE(world.Take<AttemptAborted>().size() == 1);
  world.Say(FinishReceive{"r0", Version(1), absl::DataLossError("failed"), 0, 0});
  REQUIRE((*receivers.calls[0])->status.code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a chunk that failed is told by its workers and tensors",
          "[control][coordinator][field][case-89]") {
  DaemonWorld world;
  Receivers receivers(world);
  world.stages = false;
  world.Say(PrepareFor("n1", 1));
  world.Settle();
  world.Say(GoAttempt{kAttempt});
  const FailedChunk of_one{StreamNumber(1, 0), 0};
  SECTION("of the plan") {
    world.coordinator().OnFailed(
        kAttempt, WithFailedChunk(absl::DataLossError("chunk 0 of stream 65536 from n0"), of_one));
    REQUIRE(Text(world.Take<AttemptFailed>().at(0).status) ==
            "policy/1 to engine0/0, bytes of w: chunk 0 of stream 65536 from n0");
  }
  SECTION("of none that the plan has: what the mover said") {
    const FailedChunk none =
        GENERATE_COPY(FailedChunk{of_one.stream, 9}, FailedChunk{StreamNumber(7, 0), 0});
    world.coordinator().OnFailed(kAttempt, WithFailedChunk(absl::DataLossError("a chunk"), none));
    REQUIRE(Text(world.Take<AttemptFailed>().at(0).status) == "a chunk");
  }
}

TEST_CASE("a chunk of many tensors is described by the first few",
          "[control][coordinator][field][case-89]") {
  PrepareAttempt message = PrepareFor("n1", 1);
  PlanPart& part = *message.plan;
  const Move move = part.moves.front();
  part.moves.clear();
  for (std::uint32_t i = 0; i < 5; ++i) {
    part.tensors.push_back({"w" + std::to_string(i), part.tensors.front().dtype, {8}});
    Move another = move;
    another.tensor = TensorId(static_cast<std::uint32_t>(part.tensors.size() - 1));
    another.bytes = 16;
    part.moves.insert(part.moves.end(), 2, another);  // two moves of each
  }
  const std::string pair = part.workers.at(move.src.value()).name.ToString() + " to " +
                           part.workers.at(move.dst.value()).name.ToString() + ", bytes of ";
  const std::uint32_t stream = StreamNumber(part.workers.at(move.src.value()).name.rank,
                                            part.workers.at(move.dst.value()).name.rank);
  REQUIRE(HeldPlan(part, "n1", 1024).Describe({stream, 0}) == pair + "w0, w1, w2 and 2 more");
  const HeldPlan small(part, "n1", 48);  // chunks end amid tensors
  REQUIRE(small.Describe({stream, 0}) == pair + "w0, w1");
  REQUIRE(small.Describe({stream, 1}) == pair + "w1, w2");
  REQUIRE(small.Describe({stream, 3}) == pair + "w4");
  REQUIRE(small.Describe({stream, 4}).empty());
}

TEST_CASE("go and commit are taken in their turn only", "[control][coordinator]") {
  DaemonWorld world;
  Receivers receivers(world);
  world.prepares = false;
  world.Say(PrepareFor("n1", 1));
  world.Say(GoAttempt{kAttempt});
  world.Say(CommitAttempt{kAttempt});
  world.Say(CommitAttempt{AttemptId(77)});
  world.Say(PrepareFor("n1", 1));
  REQUIRE(world.log == std::vector<std::string>{"prepare"});
  REQUIRE(world.coordinator().stale_messages() == 4);
  REQUIRE(world.Take<AttemptCommitted>().empty());
}

}  // namespace
}  // namespace wb
