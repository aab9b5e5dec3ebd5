#include "daemon/move/coordinate/local_attempts.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "daemon/move/failed_chunk.h"
#include "daemon/state/seconds.h"
#include "planner/base/status_macros.h"

namespace wb {

namespace {

/// Of each phase the longer time.
MoveTimes Largest(const MoveTimes& a, const MoveTimes& b) {
  return {std::max(a.pack_seconds, b.pack_seconds), std::max(a.wire_seconds, b.wire_seconds),
          std::max(a.scatter_seconds, b.scatter_seconds), std::max(a.copy_seconds, b.copy_seconds)};
}

bool TouchedBy(const LocalAttempt& attempt, const Session& session) {
  return attempt.receivers.contains(session.id) || attempt.sources.contains(session.id);
}

bool InSnapshot(const Session& session, Version version) {
  return session.snapshot.has_value() && session.snapshot->version == version;
}

}  // namespace

LocalAttempt* LocalAttempts::Find(AttemptId id) {
  const auto found = state_.attempts.find(id);
  return found == state_.attempts.end() ? nullptr : &found->second;
}

LocalAttempt* LocalAttempts::Expect(AttemptId id, LocalState state) {
  LocalAttempt* attempt = Find(id);
  if (attempt != nullptr && attempt->state == state) return attempt;
  ++state_.stale_messages;
  return nullptr;
}

void LocalAttempts::Prepare(PrepareAttempt message) {
  const AttemptId id = message.attempt;
  for (const std::string& group : message.forget) state_.plans.erase({message.job, group});
  if (Find(id) != nullptr) {
    ++state_.stale_messages;
    return;
  }
  if (const absl::Status status = TryPrepare(std::move(message)); !status.ok()) {
    spdlog::warn("attempt={:016x} refused: {}", id.value(), status.ToString());
    state_.Tell(AttemptFailed{id, status});
  }
}

absl::Status LocalAttempts::TryPrepare(PrepareAttempt message) {
  WB_ASSIGN_OR_RETURN(HeldPlan* const plan, PlanFor(message));
  LocalAttempt attempt;
  attempt.id = message.attempt;
  attempt.job = message.job;
  attempt.group = message.group;
  attempt.version = message.version;
  attempt.since = state_.turns.Now();
  for (const auto& [id, session] : state_.sessions) {
    if (session.job() != message.job || session.membership != Session::Membership::kMember)
      continue;
    if (session.name().group == message.group) {
      attempt.receivers.insert(id);
    } else if (message.workers.contains(session.name().ToString())) {
      attempt.sources.insert(id);
      if (InSnapshot(session, message.version)) attempt.snapshots.insert(id);
    }
  }
  WB_RETURN_IF_ERROR(CheckReceivers(attempt));
  WB_ASSIGN_OR_RETURN(AttemptWork work,
                      plan->Bind(message, WorkersOf(message.job, message.version)));
  state_.attempts.emplace(attempt.id, std::move(attempt));
  state_.runner->Prepare(std::move(work));
  return absl::OkStatus();
}

absl::StatusOr<HeldPlan*> LocalAttempts::PlanFor(PrepareAttempt& message) {
  const GroupKey key{message.job, message.group};
  auto held = state_.plans.find(key);
  if (message.plan.has_value() &&
      (held == state_.plans.end() || held->second.part() != *message.plan)) {
    held = state_.plans
               .insert_or_assign(key, HeldPlan(*std::move(message.plan), state_.options.node,
                                               state_.options.chunk_bytes))
               .first;
  }
  if (held == state_.plans.end()) {
    return absl::FailedPreconditionError(absl::StrCat("node ", state_.options.node,
                                                      " holds no plan of job ", message.job,
                                                      " for ", message.group));
  }
  const PlanPart& part = held->second.part();
  if (part.job != message.job || part.group != message.group ||
      part.fingerprint != message.fingerprint) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", state_.options.node, " holds plan ", part.fingerprint.value(),
                     " of job ", part.job, " for ", part.group, ", the attempt is of plan ",
                     message.fingerprint.value(), " of job ", message.job, " for ", message.group));
  }
  return &held->second;
}

LocalWorkers LocalAttempts::WorkersOf(const std::string& job, Version version) const {
  LocalWorkers workers;
  for (const auto& [id, session] : state_.sessions) {
    if (session.job() != job || session.membership != Session::Membership::kMember) continue;
    LocalWorker& worker = workers[session.name()];
    worker = {id,
              session.incarnation,
              session.epoch,
              session.registration,
              session.regions,
              session.offsets};
    if (!InSnapshot(session, version)) continue;
    worker.regions = session.snapshot->regions;
    worker.offsets.assign(worker.regions.size(), 0);
  }
  return workers;
}

/// Never into live memory outside a Receive that the worker asked for.
absl::Status LocalAttempts::CheckReceivers(const LocalAttempt& attempt) const {
  for (const SessionId& id : attempt.receivers) {
    const auto session = state_.sessions.find(id);
    if (session == state_.sessions.end()) {
      return absl::UnavailableError(
          absl::StrCat("a rank of ", attempt.group, " on node ", state_.options.node, " has left"));
    }
    const auto& receive = session->second.receive;
    if (receive.has_value() && receive->version == attempt.version && !receive->gave_up &&
        !receive->ending.has_value()) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(session->second.name().ToString(),
                                                      " is not inside Receive of version ",
                                                      attempt.version.value()));
  }
  return absl::OkStatus();
}

void LocalAttempts::OnPrepared(AttemptId id) {
  LocalAttempt* attempt = Expect(id, LocalState::kPreparing);
  if (attempt == nullptr || attempt->failed) return;
  Step(*attempt, LocalState::kPrepared, state_.turns.Now());
  state_.Tell(AttemptPrepared{id});
}

void LocalAttempts::Go(AttemptId id) {
  LocalAttempt* attempt = Expect(id, LocalState::kPrepared);
  if (attempt == nullptr || attempt->failed) return;
  if (const absl::Status status = CheckReceivers(*attempt); !status.ok()) {
    Fail(*attempt, status);
    return;
  }
  if (attempt->receivers.empty()) {
    StartMoving(*attempt);
    return;
  }
  Ask(*attempt);
}

void LocalAttempts::Ask(LocalAttempt& attempt) {
  Step(attempt, LocalState::kAsking, state_.turns.Now());
  attempt.asked = attempt.receivers;
  const AttemptId id = attempt.id;
  attempt.timer = state_.turns.After(state_.options.go_timeout, [this, id] { OnGoTimeout(id); });
  for (const SessionId& session : attempt.receivers) {
    state_.notices->NotifyGo(session, attempt.version, state_.turns.Guard([this, id, session] {
      OnGoAccepted(id, session);
    }));
  }
}

void LocalAttempts::OnGoTimeout(AttemptId id) {
  LocalAttempt* attempt = Find(id);
  if (attempt == nullptr || attempt->state != LocalState::kAsking) return;
  std::vector<std::string> late;
  std::vector<Culprit> culprits;
  const std::chrono::duration<double> since = state_.options.go_timeout;
  for (const SessionId& session : attempt->asked) {
    if (const Session* found = state_.Find(session); found != nullptr) {
      late.push_back(found->name().ToString());
      culprits.push_back({Culprit::Reason::kLate, late.back(), found->name().group,
                          state_.options.node, state_.options.host, "go", since.count()});
    }
  }
  Fail(*attempt,
       WithCulprits(absl::DeadlineExceededError(absl::StrCat(
                        absl::StrJoin(late, ", "), " did not accept the go notice of version ",
                        attempt->version.value(), " within ", Seconds(state_.options.go_timeout))),
                    culprits));
}

void LocalAttempts::OnGoAccepted(AttemptId id, const SessionId& session) {
  LocalAttempt* attempt = Find(id);
  if (attempt == nullptr || attempt->state != LocalState::kAsking) return;
  if (attempt->asked.erase(session) == 0) return;
  if (Session* found = state_.Find(session); found != nullptr) {
    found->memory = MemoryState::kInvalid;
    ReviewOrphans();
  }
  if (!attempt->asked.empty() || attempt->failed) return;
  if (attempt->timer.has_value()) state_.turns.Cancel(*attempt->timer);
  if (const absl::Status status = CheckReceivers(*attempt); !status.ok()) {
    Fail(*attempt, status);
    return;
  }
  StartMoving(*attempt);
}

void LocalAttempts::StartMoving(LocalAttempt& attempt) const {
  Step(attempt, LocalState::kMoving, state_.turns.Now());
  state_.runner->Go(attempt.id);
}

void LocalAttempts::OnStaged(AttemptId id, const BytesByPath& bytes) {
  LocalAttempt* attempt = Expect(id, LocalState::kMoving);
  if (attempt == nullptr || attempt->failed) return;
  Step(*attempt, LocalState::kStaged, state_.turns.Now());
  NoteStaged(*attempt);
  state_.Tell(AttemptStaged{id, bytes});
}

/// Before the leader may decide: from here on a receiver that loses us is in doubt, not invalid.
void LocalAttempts::NoteStaged(const LocalAttempt& attempt) {
  for (const SessionId& receiver : attempt.receivers) {
    Session* session = state_.Find(receiver);
    if (session == nullptr) continue;
    session->held_version = attempt.version;
    session->memory = MemoryState::kInDoubt;
    session->attempt = attempt.id;
    state_.notices->NotifyStaged(receiver, attempt.version, attempt.id);
  }
}

void LocalAttempts::NoteCommit(const LocalAttempt& attempt) {
  Version& newest = state_.commits[{attempt.job, attempt.group}];
  newest = std::max(newest, attempt.version);
}

void LocalAttempts::Commit(AttemptId id) {
  LocalAttempt* attempt = Expect(id, LocalState::kStaged);
  if (attempt == nullptr) return;
  Step(*attempt, LocalState::kFinishing, state_.turns.Now());
  SettleReceivers(*attempt, true);
  AddBytes(*attempt);
  NoteCommit(*attempt);
  state_.runner->Finish(id);
  state_.Tell(AttemptCommitted{id});
}

/// The leader's word on what the receivers hold in doubt. Who is not in Receive any more is told.
void LocalAttempts::SettleReceivers(const LocalAttempt& attempt, bool committed) {
  for (const SessionId& receiver : attempt.receivers) {
    Session* session = state_.Find(receiver);
    if (session == nullptr || session->attempt != attempt.id) continue;
    if (session->memory != MemoryState::kInDoubt) continue;
    session->memory = committed ? MemoryState::kValid : MemoryState::kInvalid;
    if (session->receive.has_value() && session->receive->version == attempt.version) {
      session->receive->committed = committed;
    } else {
      state_.notices->NotifyOutcome(receiver, attempt.version, committed);
    }
  }
}

void LocalAttempts::AddBytes(const LocalAttempt& attempt) {
  const auto plan = state_.plans.find({attempt.job, attempt.group});
  if (plan == state_.plans.end()) return;
  for (auto& [id, session] : state_.sessions) {
    if (session.job() != attempt.job) continue;
    const WorkerBytes bytes = plan->second.BytesOf(session.name());
    if (session.publish.has_value() && session.publish->version == attempt.version) {
      session.publish->bytes += bytes.sent;
    }
    if (session.receive.has_value() && attempt.receivers.contains(id)) {
      session.receive->bytes += bytes.received;
    }
  }
}

void LocalAttempts::OnMeasured(AttemptId id, const AttemptTimes& times) {
  const LocalAttempt* attempt = Find(id);
  if (attempt == nullptr) return;
  const auto take = [](const std::map<std::int32_t, MoveTimes>& by_rank, const Session& session,
                       MoveTimes& largest) {
    const auto found = by_rank.find(session.name().rank);
    if (found != by_rank.end()) largest = Largest(largest, found->second);
  };
  for (auto& [session_id, session] : state_.sessions) {
    if (session.job() != attempt->job) continue;
    if (session.publish.has_value() && session.publish->version == attempt->version) {
      take(times.sources, session, session.publish->times);
    }
    if (session.receive.has_value() && attempt->receivers.contains(session_id)) {
      take(times.destinations, session, session.receive->times);
    }
  }
}

void LocalAttempts::OnFailed(AttemptId id, const absl::Status& status) {
  LocalAttempt* attempt = Find(id);
  if (attempt == nullptr) return;
  const auto& [told, chunk] = TakeFailedChunk(status);
  const auto plan = state_.plans.find({attempt->job, attempt->group});
  if (!chunk.has_value() || plan == state_.plans.end()) return Fail(*attempt, told);
  const std::string what = plan->second.Describe(*chunk);
  Fail(*attempt, what.empty() ? told : Reworded(told, absl::StrCat(what, ": ", told.message())));
}

void LocalAttempts::Fail(LocalAttempt& attempt, const absl::Status& status) {
  const bool decided =
      attempt.state == LocalState::kFinishing || attempt.state == LocalState::kAborting;
  if (attempt.failed || decided) return;
  attempt.failed = true;
  spdlog::warn("attempt={:016x} job={} version={} group={} failed: {}", attempt.id.value(),
               attempt.job, attempt.version.value(), attempt.group, status.ToString());
  state_.Tell(AttemptFailed{attempt.id, status});
}

void LocalAttempts::Abort(const AbortAttempt& message) {
  LocalAttempt* attempt = Find(message.attempt);
  if (attempt == nullptr) {
    // Refused at prepare, or aborted of ourselves: nothing of it moves here.
    state_.Tell(AttemptAborted{message.attempt});
    return;
  }
  if (attempt->state == LocalState::kFinishing) {
    ++state_.stale_messages;
    return;
  }
  attempt->leader_waits = true;
  if (attempt->state == LocalState::kStaged) SettleReceivers(*attempt, false);
  if (attempt->state != LocalState::kAborting) BeginAbort(*attempt);
}

void LocalAttempts::BeginAbort(LocalAttempt& attempt) {
  if (attempt.timer.has_value()) state_.turns.Cancel(*attempt.timer);
  Step(attempt, LocalState::kAborting, state_.turns.Now());
  state_.runner->Abort(attempt.id);
}

void LocalAttempts::OnEnded(AttemptId id) {
  const auto found = state_.attempts.find(id);
  if (found == state_.attempts.end()) return;
  const bool leader_waits = found->second.leader_waits;
  state_.attempts.erase(found);
  if (leader_waits) state_.Tell(AttemptAborted{id});
  events_.OnAttemptOver();
}

bool LocalAttempts::Touches(const Session& session) const {
  return std::any_of(state_.attempts.begin(), state_.attempts.end(),
                     [&](const auto& entry) { return TouchedBy(entry.second, session); });
}

bool LocalAttempts::TouchesMemory(const Session& session) const {
  return std::any_of(state_.attempts.begin(), state_.attempts.end(), [&](const auto& entry) {
    const LocalAttempt& attempt = entry.second;
    return TouchedBy(attempt, session) && !attempt.snapshots.contains(session.id);
  });
}

/// An orphan has all that it can get: who still waited for our bytes fails without its leader too.
bool LocalAttempts::NeedsSnapshot(const Session& session) const {
  return std::any_of(state_.attempts.begin(), state_.attempts.end(), [&](const auto& entry) {
    return entry.second.snapshots.contains(session.id) && !entry.second.orphan;
  });
}

const LocalAttempt* LocalAttempts::Staged(const Session& session, Version version) const {
  for (const auto& [id, attempt] : state_.attempts) {
    if (attempt.state == LocalState::kStaged && attempt.version == version &&
        attempt.receivers.contains(session.id)) {
      return &attempt;
    }
  }
  return nullptr;
}

void LocalAttempts::AbortFor(const Session& session, const absl::Status& status) {
  for (auto& [id, attempt] : state_.attempts) {
    if (!TouchedBy(attempt, session) || !CanMove(attempt.state, LocalState::kAborting)) continue;
    if (attempt.state == LocalState::kStaged) continue;
    Fail(attempt, status);
    BeginAbort(attempt);
  }
}

void LocalAttempts::LeaderLost() {
  for (auto& [id, attempt] : state_.attempts) {
    attempt.leader_waits = false;
    if (attempt.state == LocalState::kStaged && !attempt.receivers.empty()) {
      attempt.orphan = true;
    } else if (CanMove(attempt.state, LocalState::kAborting)) {
      BeginAbort(attempt);
    }
  }
  ReviewOrphans();
}

void LocalAttempts::Resolve(Session& session, bool committed) {
  session.memory = committed ? MemoryState::kValid : MemoryState::kInvalid;
  if (const LocalAttempt* attempt = Find(session.attempt); committed && attempt != nullptr) {
    NoteCommit(*attempt);
    const auto plan = state_.plans.find({attempt->job, attempt->group});
    const bool waits = session.receive.has_value() && session.receive->version == attempt->version;
    if (waits && plan != state_.plans.end()) {
      session.receive->bytes += plan->second.BytesOf(session.name()).received;
    }
  }
  ReviewOrphans();
}

void LocalAttempts::Forget(const Session& session) {
  for (auto& [id, attempt] : state_.attempts) {
    if (attempt.orphan) attempt.receivers.erase(session.id);
  }
  ReviewOrphans();
}

/// Lets go of what was staged without a leader once no receiver waits to hear of it.
void LocalAttempts::ReviewOrphans() {
  for (auto& entry : state_.attempts) {
    LocalAttempt& attempt = entry.second;
    if (!attempt.orphan || attempt.state != LocalState::kStaged) continue;
    const bool awaited = std::any_of(
        attempt.receivers.begin(), attempt.receivers.end(), [&](const SessionId& receiver) {
          const Session* session = state_.Find(receiver);
          return session != nullptr && session->memory == MemoryState::kInDoubt &&
                 session->attempt == attempt.id;
        });
    if (awaited) continue;
    Step(attempt, LocalState::kFinishing, state_.turns.Now());
    state_.runner->Finish(attempt.id);
  }
}

}  // namespace wb
