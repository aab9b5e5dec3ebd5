#include "tests/daemon/support/daemon_world.h"

#include <memory>

#include <spdlog/spdlog.h>

#include "planner/lower/plan_part.h"
#include "planner/solve/planner.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

template <typename Result>
std::function<void(Result)> Into(const std::shared_ptr<std::optional<Result>>& pending) {
  return [pending](Result result) {
    REQUIRE_FALSE(pending->has_value());  // answered once
    *pending = std::move(result);
  };
}

SessionOpening OpeningOf(const SessionId& session,
                         const Registration& registration,
                         int world_size) {
  SessionOpening opening;
  opening.session = session;
  opening.incarnation = Incarnation(5);
  opening.world_size = world_size;
  opening.epoch = Epoch(3);
  opening.registration = registration;
  for (const Buffer& buffer : registration.layout.buffers) {
    absl::StatusOr<Region> region = Region::AllocateArena(4096);
    REQUIRE(region.ok());
    opening.buffers.push_back({buffer.name, *std::move(region), 64});
  }
  return opening;
}

}  // namespace

DaemonWorld::DaemonWorld(const std::string& node)
    : coordinator_(timers, *this, CoordinatorOptions{.node = node, .incarnation = Incarnation(9)}) {
  spdlog::set_level(spdlog::level::off);
  coordinator_.SetRunner(this);
  coordinator_.SetNotices(this);
}

std::shared_ptr<DaemonWorld::Opened> DaemonWorld::Open(const SessionId& session,
                                                       const Registration& registration,
                                                       int world_size,
                                                       const HeldBefore& held) {
  SessionOpening opening = OpeningOf(session, registration, world_size);
  opening.held_version = held.version;
  opening.memory = held.memory;
  opening.attempt = held.attempt;
  return Open(std::move(opening));
}

std::shared_ptr<DaemonWorld::Opened> DaemonWorld::OpenForSnapshots(const SessionId& session,
                                                                   const Registration& registration,
                                                                   int world_size) {
  SessionOpening opening = OpeningOf(session, registration, world_size);
  opening.snapshots.emplace();
  for (const Buffer& buffer : registration.layout.buffers) {
    opening.snapshots->push_back(Region::MapArena(buffer.bytes).value());
  }
  return Open(std::move(opening));
}

std::shared_ptr<DaemonWorld::Opened> DaemonWorld::Open(SessionOpening opening) {
  opening.released = on_released;
  auto opened = std::make_shared<Opened>();
  coordinator_.OpenSession(std::move(opening), In(std::chrono::seconds(5)),
                           [opened](const SessionOpened& answer) {
                             REQUIRE_FALSE(opened->status.has_value());
                             opened->status = answer.status;
                             opened->memory = answer.memory;
                           });
  return opened;
}

DaemonWorld::Pending<PublishResult> DaemonWorld::Publish(const SessionId& session,
                                                         std::uint64_t version,
                                                         std::chrono::milliseconds deadline,
                                                         bool snapshot) {
  auto pending = std::make_shared<std::optional<PublishResult>>();
  coordinator_.Publish(session, Version(version), {{"step", {"engine0"}}, snapshot}, In(deadline),
                       Into(pending));
  return pending;
}

DaemonWorld::Pending<ReceiveResult> DaemonWorld::Receive(const SessionId& session,
                                                         std::uint64_t version,
                                                         std::chrono::milliseconds deadline) {
  auto pending = std::make_shared<std::optional<ReceiveResult>>();
  coordinator_.Receive(session, Version(version), In(deadline), Into(pending));
  return pending;
}

DaemonWorld::Pending<absl::StatusOr<Version>> DaemonWorld::Wait(
    const SessionId& session, std::uint64_t at_least, std::chrono::milliseconds deadline) {
  auto pending = std::make_shared<std::optional<absl::StatusOr<Version>>>();
  coordinator_.WaitForVersion(session, Version(at_least), In(deadline), Into(pending));
  return pending;
}

void DaemonWorld::Settle() {
  while (!reports_.empty()) {
    const std::function<void()> report = std::move(reports_.front());
    reports_.pop_front();
    report();
  }
}

void DaemonWorld::Send(ToLeader message) {
  const auto* call = std::get_if<RegisterWorker>(&message);
  const std::optional<SessionId> session =
      call == nullptr ? std::nullopt : std::optional(call->session);
  sent_.push_back(std::move(message));
  if (session.has_value() && registers) Say(WorkerRegistered{*session, absl::OkStatus()});
}

void DaemonWorld::AddRegion(RegionId id, Region region) {
  regions[id] = region.bytes();
}

void DaemonWorld::RemoveRegion(RegionId id, std::function<void()> removed) {
  REQUIRE(regions.erase(id) == 1);
  if (unmaps) {
    removed();
  } else {
    removals.push_back(std::move(removed));
  }
}

void DaemonWorld::Prepare(AttemptWork work) {
  log.emplace_back("prepare");
  const AttemptId id = work.attempt;
  works[id] = std::move(work);
  if (prepares) reports_.emplace_back([this, id] { coordinator_.OnPrepared(id); });
}

void DaemonWorld::Go(AttemptId attempt) {
  log.emplace_back("go");
  if (stages) {
    reports_.emplace_back([this, attempt] { coordinator_.OnStaged(attempt, {256, 0, 0}); });
  }
}

void DaemonWorld::Abort(AttemptId attempt) {
  log.emplace_back("abort");
  if (ends) reports_.emplace_back([this, attempt] { coordinator_.OnEnded(attempt); });
}

void DaemonWorld::Finish(AttemptId attempt) {
  log.emplace_back("finish");
  if (ends) reports_.emplace_back([this, attempt] { coordinator_.OnEnded(attempt); });
}

void DaemonWorld::TakeSnapshot(SnapshotWork work) {
  log.emplace_back("snapshot");
  const SnapshotId id = work.id;
  snapshots[id] = std::move(work);
  if (copies) reports_.emplace_back([this, id] { coordinator_.OnSnapshot(id, absl::OkStatus()); });
}

void DaemonWorld::DropSnapshot(SnapshotId snapshot) {
  log.emplace_back("drop");
  if (!ends) return;
  reports_.emplace_back(
      [this, snapshot] { coordinator_.OnSnapshot(snapshot, absl::CancelledError("dropped")); });
}

void DaemonWorld::NotifyGo(const SessionId& session,
                           Version /*version*/,
                           std::function<void()> accepted) {
  log.push_back("notice " + session);
  if (accepts_go) {
    accepted();
    return;
  }
  notices.emplace_back(session, std::move(accepted));
}

void DaemonWorld::NotifyStaged(const SessionId& session, Version version, AttemptId attempt) {
  log.push_back("staged " + session);
  for (const ToLeader& message : sent_) {
    const auto* told = std::get_if<AttemptStaged>(&message);
    REQUIRE((told == nullptr || told->attempt != attempt));  // the client hears of it first
  }
  staged[session] = version;
}

void DaemonWorld::NotifyOutcome(const SessionId& session, Version version, bool committed) {
  outcomes[session] = {version, committed};
}

void DaemonWorld::NotifySnapshot(const SessionId& session, Version version, double /*seconds*/) {
  log.push_back("taken " + session);
  for (const ToLeader& message : sent_) {
    REQUIRE_FALSE(std::holds_alternative<PublishVersion>(message));  // the client hears of it first
  }
  copied[session] = version;
}

void DaemonWorld::CloseGone() {
  for (const SessionId& session : std::exchange(gone, {})) {
    coordinator_.CloseSession(session, "has ended");
  }
}

void OpenEngine(DaemonWorld& world) {
  world.coordinator().OnLeaderConnected();
  for (int rank = 0; rank < 2; ++rank) {
    const SessionId session = "r" + std::to_string(rank);
    REQUIRE(world.Open(session, RolloutRank("engine0", rank, 2, "n1"), 2)->status->ok());
  }
}

PrepareAttempt PrepareFor(const std::string& node, std::uint64_t version, bool with_plan) {
  std::vector<Registration> all;
  for (int rank = 0; rank < 2; ++rank) {
    all.push_back(TrainerRank(rank, 2, "n0"));
    all.push_back(RolloutRank("engine0", rank, 2, "n1"));
  }
  const auto job = std::get<Job>(MakeJob(all));
  const auto plan = std::get<Plan>(Solve(job));
  PrepareAttempt message;
  message.attempt = AttemptId(1000 + version);
  message.job = "gqa";
  message.group = "engine0";
  message.version = Version(version);
  message.fingerprint = plan.FindGroup("engine0")->fingerprint;
  if (with_plan) message.plan = MakePlanPart(job, plan, "engine0", node);
  const std::string other = node == "n1" ? "n0" : "n1";
  message.peers.push_back({other, Incarnation(1), "address of " + other});
  const std::string group = node == "n1" ? "engine0" : "policy";
  const WorkerGeneration generation{Incarnation(5), Epoch(3)};
  message.workers = {{group + "/0", generation}, {group + "/1", generation}};
  return message;
}

}  // namespace wb::test
