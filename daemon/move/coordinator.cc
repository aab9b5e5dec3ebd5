#include "daemon/move/coordinator.h"

#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "daemon/move/coordinate/calls.h"
#include "daemon/move/coordinate/coordinator_state.h"
#include "daemon/move/coordinate/sessions.h"
#include "daemon/state/seconds.h"

namespace wb {
namespace {

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

void AppendCalls(const Session& session,
                 Timers::Clock::time_point now,
                 std::vector<std::string>& waits) {
  const auto add = [&](const auto& call, absl::string_view what) {
    if (!call.has_value()) return;
    waits.push_back(absl::StrCat("job ", session.job(), ": ", session.name().ToString(),
                                 " is waiting ", what, ", ", Seconds(now - call->since)));
  };
  add(session.opening, "for the leader to register it");
  if (session.publish.has_value()) {
    add(session.publish, absl::StrCat("in Publish of version ", session.publish->version.value(),
                                      session.awaits_snapshot() ? " for its snapshot" : ""));
  }
  if (session.receive.has_value()) {
    add(session.receive, absl::StrCat("in Receive of version ", session.receive->version.value()));
  }
  if (session.wait.has_value()) {
    add(session.wait, absl::StrCat("for version ", session.wait->version.value(), " or above"));
  }
}

}  // namespace

struct Coordinator::State {
  State(Timers& timers, LeaderLink& leader, CoordinatorOptions options)
      : values(timers, leader, std::move(options)), calls(values), sessions(values, calls) {}

  LocalAttempts& attempts() { return calls.attempts(); }

  void On(const Welcome& /*message*/) {}
  /// The leader asks whether what it knows of our sessions still holds.
  void On(const Heartbeat& /*message*/) {
    values.notices->CloseGone();
    values.turns.Run([this] { values.Tell(Heartbeat{}); });
  }
  void On(const WorkerRegistered& message) { sessions.OnWorkerRegistered(message); }
  void On(const VersionOutcome& message) { calls.OnVersionOutcome(message); }
  void On(const VersionOffered& message) { calls.OnVersionOffered(message); }
  void On(const VersionFailed& message) { calls.OnVersionFailed(message); }
  void On(PrepareAttempt& message) { attempts().Prepare(std::move(message)); }
  void On(const GoAttempt& message) { attempts().Go(message.attempt); }
  void On(const CommitAttempt& message) { attempts().Commit(message.attempt); }
  void On(const AbortAttempt& message) { attempts().Abort(message); }
  void On(const FinishPublish& message) { calls.OnFinishPublish(message); }
  void On(const FinishReceive& message) { calls.OnFinishReceive(message); }

  CoordinatorState values;
  Calls calls;
  Sessions sessions;
};

Coordinator::Coordinator(Timers& timers, LeaderLink& leader, CoordinatorOptions options)
    : state_(std::make_unique<State>(timers, leader, std::move(options))) {}

Coordinator::~Coordinator() = default;

void Coordinator::SetRunner(AttemptRunner* runner) {
  state_->values.runner = runner;
}

void Coordinator::SetNotices(SessionNotices* notices) {
  state_->values.notices = notices;
}

void Coordinator::OpenSession(SessionOpening opening,
                              Clock::time_point deadline,
                              std::function<void(SessionOpened)> done) {
  // Regions only move, tasks are copied: the opening travels behind a pointer.
  const auto carried = std::make_shared<SessionOpening>(std::move(opening));
  state_->values.turns.Run([this, carried, deadline, done = std::move(done)] {
    state_->sessions.Open(std::move(*carried), deadline, done);
  });
}

void Coordinator::Publish(const SessionId& session,
                          Version version,
                          const PublishCall& call,
                          Clock::time_point deadline,
                          std::function<void(PublishResult)> done) {
  state_->values.turns.Run(
      [this, request = Calls::Request{session, version, deadline}, call, done = std::move(done)] {
        state_->calls.Publish(request, call, done);
      });
}

void Coordinator::WaitForVersion(const SessionId& session,
                                 Version at_least,
                                 Clock::time_point deadline,
                                 std::function<void(absl::StatusOr<Version>)> done) {
  state_->values.turns.Run(
      [this, request = Calls::Request{session, at_least, deadline}, done = std::move(done)] {
        state_->calls.WaitForVersion(request, done);
      });
}

void Coordinator::Receive(const SessionId& session,
                          Version version,
                          Clock::time_point deadline,
                          std::function<void(ReceiveResult)> done) {
  state_->values.turns.Run([this, request = Calls::Request{session, version, deadline},
                            done = std::move(done)] { state_->calls.Receive(request, done); });
}

void Coordinator::CloseSession(const SessionId& session, const std::string& reason) {
  state_->values.turns.Run(
      [this, session, reason] { state_->sessions.Close(session, absl::CancelledError(reason)); });
}

void Coordinator::OnLeaderConnected() {
  state_->values.turns.Run([this] {
    state_->values.connected = true;
    state_->values.leader_changed = state_->values.turns.Now();
    state_->sessions.Replay();
  });
}

void Coordinator::OnLeaderLost(const absl::Status& why) {
  state_->values.turns.Run([this, why] {
    if (state_->values.connected) state_->values.leader_changed = state_->values.turns.Now();
    state_->values.connected = false;
    state_->values.leader_lost = why;
    state_->sessions.LeaderLost();
    state_->calls.LeaderLost();
    state_->attempts().LeaderLost();
  });
}

void Coordinator::OnLeaderMessage(FromLeader message) {
  state_->values.turns.Run([this, message = std::move(message)]() mutable {
    std::visit([&](auto& body) { state_->On(body); }, message);
  });
}

void Coordinator::OnPrepared(AttemptId attempt) {
  state_->values.turns.Run([this, attempt] { state_->attempts().OnPrepared(attempt); });
}

void Coordinator::OnStaged(AttemptId attempt, const BytesByPath& bytes) {
  state_->values.turns.Run([this, attempt, bytes] { state_->attempts().OnStaged(attempt, bytes); });
}

void Coordinator::OnMeasured(AttemptId attempt, const AttemptTimes& times) {
  state_->values.turns.Run(
      [this, attempt, &times] { state_->attempts().OnMeasured(attempt, times); });
}

void Coordinator::OnFailed(AttemptId attempt, const absl::Status& status) {
  state_->values.turns.Run(
      [this, attempt, status] { state_->attempts().OnFailed(attempt, status); });
}

void Coordinator::OnEnded(AttemptId attempt) {
  state_->values.turns.Run([this, attempt] { state_->attempts().OnEnded(attempt); });
}

void Coordinator::OnSnapshot(SnapshotId snapshot, const absl::Status& status) {
  state_->values.turns.Run(
      [this, snapshot, status] { state_->calls.OnSnapshot(snapshot, status); });
}

void Coordinator::Drain() {
  state_->values.turns.Run([this] {
    state_->values.draining = true;
    state_->sessions.CloseAll(
        absl::CancelledError(absl::StrCat("daemon ", state_->values.options.node, " is draining")));
  });
}

std::size_t Coordinator::sessions() const {
  return state_->values.sessions.size();
}

bool Coordinator::updating() const {
  return !state_->values.attempts.empty();
}

std::uint64_t Coordinator::stale_messages() const {
  return state_->values.stale_messages;
}

std::vector<std::string> Coordinator::Waits() const {
  const CoordinatorState& values = state_->values;
  const Timers::Clock::time_point now = values.turns.Now();
  std::vector<std::string> waits;
  if (!values.connected) waits.emplace_back(values.LeaderStatus().message());
  for (const auto& [id, session] : values.sessions) AppendCalls(session, now, waits);
  for (const auto& [id, attempt] : values.attempts) {
    waits.push_back(absl::StrCat("job ", attempt.job, " version ", attempt.version.value(), " to ",
                                 attempt.group, ": ", View(Name(attempt.state)), ", ",
                                 Seconds(now - attempt.since)));
  }
  return waits;
}

}  // namespace wb
