#include "daemon/move/coordinate/calls.h"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "daemon/state/seconds.h"

namespace wb {
namespace {

template <typename Result>
Result Failed(const absl::Status& status) {
  if constexpr (std::is_same_v<Result, PublishResult> || std::is_same_v<Result, ReceiveResult>) {
    Result result;
    result.status = status;
    return result;
  } else {
    return Result(status);
  }
}

template <typename Result>
const char* CallName() {
  if constexpr (std::is_same_v<Result, PublishResult>) return "Publish";
  if constexpr (std::is_same_v<Result, ReceiveResult>) return "Receive";
  return "WaitForVersion";
}

/// What may still happen to the caller's memory when its end is not confirmed.
template <typename Result>
const char* Hazard() {
  return std::is_same_v<Result, PublishResult> ? "memory may still be read"
                                               : "memory may still change";
}

}  // namespace

absl::StatusOr<Session*> Calls::Caller(const SessionId& id) {
  Session* session = state_.Find(id);
  if (session == nullptr) return absl::NotFoundError("no such session");
  if (session->opening.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("session ", session->id, " has not joined yet"));
  }
  if (session->membership == Session::Membership::kRefused) return session->refusal;
  if (absl::Status leader = state_.LeaderStatus(); !leader.ok()) return leader;
  return session;
}

template <typename Result>
bool Calls::Begin(const Request& request, Slot<Result> slot, std::function<void(Result)> done) {
  absl::StatusOr<Session*> session = Caller(request.session);
  if (session.ok() && ((*session)->*slot).has_value()) {
    session = absl::FailedPreconditionError(
        absl::StrCat((*session)->name().ToString(), " is inside ", CallName<Result>(),
                     " of version ", ((*session)->*slot)->version.value(), " already"));
  }
  if (!session.ok()) {
    done(Failed<Result>(session.status()));
    return false;
  }
  PendingCall<Result>& call = ((*session)->*slot).emplace();
  call.version = request.version;
  call.since = state_.turns.Now();
  call.timeout = std::max(request.deadline - call.since, Clock::duration::zero());
  call.done = std::move(done);
  if constexpr (std::is_same_v<Result, absl::StatusOr<Version>>) {
    call.timer =
        state_.turns.At(request.deadline, [this, id = request.session] { OnWaitDeadline(id); });
  } else {
    call.timer = state_.turns.At(request.deadline,
                                 [this, id = request.session, slot] { OnDeadline(id, slot); });
  }
  return true;
}

template <typename Result>
void Calls::Answer(Session& session, Slot<Result> slot, Result result) {
  PendingCall<Result> call = *std::move(session.*slot);
  (session.*slot).reset();
  state_.turns.Cancel(call.timer);
  call.done(std::move(result));
}

void Calls::Publish(const Request& request,
                    const PublishCall& call,
                    std::function<void(PublishResult)> done) {
  if (!Begin(request, &Session::publish, std::move(done))) return;
  if (!call.snapshot) {
    state_.Tell(PublishVersion{request.session, request.version, call.options});
    return;
  }
  Session& session = *state_.Find(request.session);
  if (!session.snapshot.has_value()) {
    Answer(session, &Session::publish,
           Failed<PublishResult>(absl::FailedPreconditionError(
               absl::StrCat("Publish of version ", request.version.value(), " by ",
                            session.name().ToString(), ": it has not joined for snapshots"))));
    return;
  }
  session.publish->snapshot.emplace().options = call.options;
  ConsiderSnapshot(session);
}

/// Nothing is written where an earlier version is still read from.
void Calls::ConsiderSnapshot(Session& session) {
  if (!session.awaits_snapshot() || session.publish->ending.has_value()) return;
  if (Snapshots::Copying(session) || attempts_.NeedsSnapshot(session)) return;
  snapshots_.Begin(session);
}

void Calls::OnSnapshot(SnapshotId snapshot, const absl::Status& status) {
  Session* session = snapshots_.OnEnded(snapshot);
  if (session == nullptr) return;
  PendingCall<PublishResult>& call = *session->publish;
  if (call.ending.has_value()) {
    AnswerEnded(*session, &Session::publish);
    return;
  }
  if (!status.ok()) {
    EndSnapshot(*session,
                Reworded(status, absl::StrCat("its snapshot failed: ", status.message())));
    return;
  }
  const std::chrono::duration<double> took = state_.turns.Now() - call.since;
  call.snapshot->seconds = took.count();
  session->snapshot->version = call.version;
  state_.notices->NotifySnapshot(session->id, call.version, took.count());
  state_.Tell(PublishVersion{session->id, call.version, call.snapshot->options, took.count()});
}

/// Other ranks that have published the version fail with it.
void Calls::EndSnapshot(Session& session, const absl::Status& why) {
  const Version version = session.publish->version;
  state_.Tell(GiveUpVersion{session.id, version, std::string(why.message())});
  End(session, &Session::publish,
      Reworded(why, absl::StrCat("Publish of version ", version.value(), " by ",
                                 session.name().ToString(), ": ", why.message())));
}

absl::Status Calls::LateSnapshot(const Session& session) const {
  const Clock::duration timeout = session.publish->timeout;
  const Culprit self{Culprit::Reason::kLate,
                     "",
                     "",
                     state_.options.node,
                     state_.options.host,
                     "snapshot",
                     std::chrono::duration<double>(timeout).count()};
  return WithCulprits(absl::DeadlineExceededError(
                          absl::StrCat("its snapshot was not taken within ", Seconds(timeout))),
                      {&self, 1});
}

void Calls::Receive(const Request& request, std::function<void(ReceiveResult)> done) {
  if (!Begin(request, &Session::receive, std::move(done))) return;
  state_.Tell(AcceptVersion{request.session, request.version});
}

void Calls::WaitForVersion(const Request& request,
                           std::function<void(absl::StatusOr<Version>)> done) {
  if (!Begin(request, &Session::wait, std::move(done))) return;
  Session& session = *state_.Find(request.session);
  const auto offer = state_.offers.find({session.job(), session.name().group});
  if (offer != state_.offers.end() && offer->second.open &&
      offer->second.version >= request.version) {
    Answer(session, &Session::wait, absl::StatusOr<Version>(offer->second.version));
  }
}

void Calls::OnVersionOffered(const VersionOffered& message) {
  Offer& offer = state_.offers[{message.job, message.group}];
  offer.version = message.version;
  offer.open = true;
  for (auto& [id, session] : state_.sessions) {
    if (session.job() != message.job || session.name().group != message.group) continue;
    if (session.wait.has_value() && session.wait->version <= message.version) {
      Answer(session, &Session::wait, absl::StatusOr<Version>(message.version));
    }
  }
}

void Calls::OnVersionFailed(const VersionFailed& message) {
  const GroupKey key{message.job, message.group};
  Offer& offer = state_.offers[key];
  offer.failed_version = message.version;
  offer.failure = message.status;
  CloseOffer(key, message.version);
}

bool Calls::IsLate(std::multiset<Version>& late, Version version) {
  const auto found = late.find(version);
  if (found == late.end()) return false;
  late.erase(found);
  return true;
}

void Calls::CloseOffer(const GroupKey& key, Version version) {
  const auto offer = state_.offers.find(key);
  if (offer != state_.offers.end() && offer->second.version == version) offer->second.open = false;
}

void Calls::OnFinishPublish(const FinishPublish& message) {
  Session* session = state_.Find(message.session);
  if (session == nullptr || IsLate(session->late_publishes, message.version) ||
      !session->publish.has_value() || session->publish->version != message.version ||
      session->awaits_snapshot()) {
    ++state_.stale_messages;
    return;
  }
  PendingCall<PublishResult>& call = *session->publish;
  if (!absl::IsInvalidArgument(message.status)) NoteSpent(*session, message.version);
  call.answer = PublishResult{message.status,       message.outcomes,     0,
                              message.wait_seconds, message.move_seconds, {}};
  if (!attempts_.Touches(*session)) {
    AnswerFinished(*session);
    return;
  }
  // All has landed where it should; our sends end when their receivers' acknowledgements are here.
  state_.turns.Cancel(call.timer);
  const Clock::time_point last =
      std::min(state_.turns.Now() + state_.options.grace, call.since + call.timeout);
  call.timer = state_.turns.At(last, [this, id = message.session] {
    Session* late = state_.Find(id);
    if (late != nullptr && late->publish.has_value()) AnswerFinished(*late);
  });
}

/// A leader that comes later must know that the number may have been given out.
void Calls::NoteSpent(Session& session, Version version) {
  if (session.role() != Role::kTrainer) return;
  session.held_version = std::max(session.held_version, version);
  session.memory = MemoryState::kValid;
}

void Calls::AnswerFinished(Session& session) {
  PublishResult result = *std::move(session.publish->answer);
  result.bytes_sent = session.publish->bytes;
  result.times = session.publish->times;
  if (const auto& snapshot = session.publish->snapshot; snapshot.has_value()) {
    result.snapshot_seconds = snapshot->seconds.value_or(0);
  }
  Answer(session, &Session::publish, std::move(result));
}

void Calls::OnFinishReceive(const FinishReceive& message) {
  Session* session = state_.Find(message.session);
  if (session != nullptr) {
    CloseOffer({session->job(), session->name().group}, message.version);
  }
  if (session == nullptr || IsLate(session->late_receives, message.version) ||
      !session->receive.has_value() || session->receive->version != message.version) {
    ++state_.stale_messages;
    return;
  }
  Answer(*session, &Session::receive,
         ReceiveResult{message.status, session->receive->bytes, message.wait_seconds,
                       message.move_seconds, session->receive->times, false});
}

template <typename Result>
void Calls::OnDeadline(const SessionId& id, Slot<Result> slot) {
  Session* session = state_.Find(id);
  if (session == nullptr || !(session->*slot).has_value()) return;
  if constexpr (std::is_same_v<Result, PublishResult>) {
    if (session->awaits_snapshot()) return EndSnapshot(*session, LateSnapshot(*session));
  }
  PendingCall<Result>& call = *(session->*slot);
  call.gave_up = true;
  state_.Tell(GiveUpVersion{
      id, call.version, absl::StrCat("its deadline of ", Seconds(call.timeout), " has passed")});
  call.timer =
      state_.turns.After(state_.options.grace, [this, id, slot] { OnGrace<Result>(id, slot); });
}

template <typename Result>
void Calls::OnGrace(const SessionId& id, Slot<Result> slot) {
  Session* session = state_.Find(id);
  if (session == nullptr || !(session->*slot).has_value()) return;
  if constexpr (std::is_same_v<Result, ReceiveResult>) {
    if (AnswerCommitted(*session)) return;
    if (AnswerInDoubt(*session, "the leader has not decided in time")) return;
  }
  const PendingCall<Result>& call = *(session->*slot);
  absl::Status status = WithCulprits(
      absl::DeadlineExceededError(absl::StrCat(
          CallName<Result>(), " of version ", call.version.value(), " by ",
          session->name().ToString(), " did not end within ", Seconds(call.timeout),
          ", and the leader has not answered ", Seconds(state_.options.grace), " later")),
      state_.LeaderCulprit(Culprit::Reason::kLate, "answer", call.timeout + state_.options.grace));
  if (call.ending.has_value()) {
    status = *call.ending;  // the leader owes no word
  } else if constexpr (std::is_same_v<Result, PublishResult>) {
    session->late_publishes.insert(call.version);
  } else {
    session->late_receives.insert(call.version);
  }
  const bool hazard = attempts_.TouchesMemory(*session) || Snapshots::Copying(*session);
  attempts_.AbortFor(*session, status);
  if (hazard) status = Reworded(status, absl::StrCat(status.message(), "; ", Hazard<Result>()));
  Answer(*session, slot, Failed<Result>(status));
}

bool Calls::AnswerCommitted(Session& session) {
  if (!session.receive->committed) return false;
  if (state_.connected) session.late_receives.insert(session.receive->version);
  Answer(
      session, &Session::receive,
      ReceiveResult{absl::OkStatus(), session.receive->bytes, 0, 0, session.receive->times, false});
  return true;
}

bool Calls::AnswerInDoubt(Session& session, const std::string& why) {
  const Version version = session.receive->version;
  const LocalAttempt* attempt = attempts_.Staged(session, version);
  if (attempt == nullptr) return false;
  if (state_.connected && !attempt->orphan) session.late_receives.insert(version);
  auto result = Failed<ReceiveResult>(
      WithCulprits(absl::UnavailableError(absl::StrCat("staged version ", version.value(),
                                                       ", outcome unknown: ", why)),
                   state_.LeaderCulprit(Culprit::Reason::kLate, "decide",
                                        state_.turns.Now() - session.receive->since)));
  result.in_doubt = true;
  Answer(session, &Session::receive, std::move(result));
  return true;
}

void Calls::OnVersionOutcome(const VersionOutcome& message) {
  Session* session = state_.Find(message.session);
  if (session == nullptr || session->memory != MemoryState::kInDoubt ||
      session->held_version != message.version) {
    ++state_.stale_messages;
    return;
  }
  attempts_.Resolve(*session, message.committed);
  const bool waits = session->receive.has_value() && session->receive->version == message.version;
  if (!waits) {
    state_.notices->NotifyOutcome(message.session, message.version, message.committed);
    return;
  }
  ReceiveResult result;
  result.bytes_received = session->receive->bytes;
  result.times = session->receive->times;
  if (!message.committed) {
    result.status = absl::AbortedError(absl::StrCat(
        "version ", message.version.value(), " failed: its leader was lost before every rank of ",
        session->name().group, " had staged it"));
  }
  Answer(*session, &Session::receive, std::move(result));
}

void Calls::OnWaitDeadline(const SessionId& id) {
  Session* session = state_.Find(id);
  if (session == nullptr || !session->wait.has_value()) return;
  const std::string& group = session->name().group;
  std::string text =
      absl::StrCat("no version of ", session->wait->version.value(), " or above was offered to ",
                   group, " of job ", session->job(), " within ", Seconds(session->wait->timeout));
  const auto offer = state_.offers.find({session->job(), group});
  if (offer != state_.offers.end() && !offer->second.failure.ok()) {
    absl::StrAppend(&text, "; version ", offer->second.failed_version.value(),
                    " failed: ", offer->second.failure.message());
  }
  Culprit trainers;
  trainers.stage = "publish";
  trainers.since_seconds = std::chrono::duration<double>(session->wait->timeout).count();
  Answer(*session, &Session::wait,
         absl::StatusOr<Version>(WithCulprits(absl::DeadlineExceededError(text), {&trainers, 1})));
}

void Calls::LeaderLost() {
  const absl::Status why = state_.LeaderStatus();
  for (auto& [id, session] : state_.sessions) {
    if (session.wait.has_value()) {
      Answer(session, &Session::wait, absl::StatusOr<Version>(why));
    }
    if (session.publish.has_value()) NoteSpent(session, session.publish->version);
    EndForLostLeader(session, &Session::publish, why);
    if (!session.receive.has_value() || AnswerCommitted(session)) continue;
    if (attempts_.Staged(session, session.receive->version) != nullptr) {
      AwaitDecision(session);
    } else {
      EndForLostLeader(session, &Session::receive, why);
    }
  }
}

/// All has landed, and the next leader can tell what it counts for.
void Calls::AwaitDecision(Session& session) {
  PendingCall<ReceiveResult>& call = *session.receive;
  state_.turns.Cancel(call.timer);
  const Clock::time_point last =
      std::min(state_.turns.Now() + state_.options.decision_grace, call.since + call.timeout);
  call.timer = state_.turns.At(last, [this, id = session.id] {
    Session* late = state_.Find(id);
    if (late == nullptr || !late->receive.has_value()) return;
    const absl::Status leader = state_.LeaderStatus();
    AnswerInDoubt(
        *late, leader.ok() ? "the leader has not decided in time" : std::string(leader.message()));
  });
}

template <typename Result>
void Calls::EndForLostLeader(Session& session, Slot<Result> slot, const absl::Status& why) {
  if (!(session.*slot).has_value()) return;
  PendingCall<Result>& call = *(session.*slot);
  if (call.ending.has_value() || call.answer.has_value()) return;
  End(session, slot,
      Reworded(why, absl::StrCat(CallName<Result>(), " of version ", call.version.value(), " by ",
                                 session.name().ToString(), ": outcome unknown: ", why.message())));
}

template <typename Result>
void Calls::End(Session& session, Slot<Result> slot, const absl::Status& status) {
  PendingCall<Result>& call = *(session.*slot);
  call.ending = status;
  state_.turns.Cancel(call.timer);
  call.timer = state_.turns.After(state_.options.grace,
                                  [this, id = session.id, slot] { OnGrace<Result>(id, slot); });
  snapshots_.Drop(session);
  AnswerEnded(session, slot);
}

template <typename Result>
void Calls::AnswerEnded(Session& session, Slot<Result> slot) {
  if (!(session.*slot).has_value() || !(session.*slot)->ending.has_value()) return;
  if (attempts_.Touches(session) || Snapshots::Copying(session)) return;
  Answer(session, slot, Failed<Result>(*(session.*slot)->ending));
}

void Calls::OnAttemptOver() {
  for (auto& [id, session] : state_.sessions) {
    const bool answered = session.publish.has_value() && session.publish->answer.has_value();
    if (answered && !attempts_.Touches(session)) AnswerFinished(session);
    AnswerEnded(session, &Session::publish);
    AnswerEnded(session, &Session::receive);
    ConsiderSnapshot(session);
  }
}

void Calls::EndCalls(Session& session, const absl::Status& status) {
  if (session.wait.has_value()) {
    Answer(session, &Session::wait, absl::StatusOr<Version>(status));
  }
  if (session.publish.has_value()) {
    snapshots_.Drop(session);
    Answer(session, &Session::publish, Failed<PublishResult>(status));
  }
  if (session.receive.has_value()) {
    Answer(session, &Session::receive, Failed<ReceiveResult>(status));
  }
}

}  // namespace wb
