#include "client/src/session.h"

#include <algorithm>
#include <map>
#include <utility>

#include <unistd.h>

namespace wb::client {
namespace {

/// What to make of a notice when none is expected: nothing.
Result<bool> IgnoreNotice(const v1::DaemonMessage& /*notice*/) {
  return false;
}

/// Whoever is at the daemon's socket, as the culprit of a call.
std::string DaemonDetail(const char* reason, const std::string& node, Milliseconds since) {
  std::map<std::string, std::string> metadata{{"stage", "answer"}};
  if (!node.empty()) metadata["node"] = node;
  metadata["since_seconds"] = Tenths(since);
  return CulpritDetail(reason, "weightbridge", metadata);
}

/// A daemon that has not answered a Join in time is its culprit; one that has, names its own.
Error NamingDaemon(Error error, SteadyClock::time_point since) {
  if (error.code == WB_DEADLINE_EXCEEDED && error.details.empty()) {
    const auto waited = std::chrono::duration_cast<Milliseconds>(SteadyClock::now() - since);
    error.details.push_back(DaemonDetail("LATE", "", waited));
  }
  return error;
}

}  // namespace

Session::Session(Enrolment enrolment, Milliseconds join_timeout)
    : enrolment_(std::move(enrolment)), join_timeout_(join_timeout), process_(::getpid()) {}

Result<Session> Session::Join(Enrolment enrolment, Milliseconds timeout) {
  Quarantine::FreeEnded();
  Session session(std::move(enrolment), timeout);
  Result<void> joined = session.EnsureJoined(SteadyClock::now() + timeout);
  if (!joined.ok()) return joined.error();
  return session;
}

void Session::Hold(HeldMemory held) {
  held_ = held;
  if (enrolment_.identity.role == v1::TRAINER) return;  // its memory is its own
  shown_->state.store(held.state);
  shown_->version.store(held.state == WB_MEMORY_VALID ? held.version : 0);
}

Result<void> Session::CheckCaller(v1::Role role, const std::string& what) const {
  const std::string name = enrolment_.identity.name();
  if (::getpid() != process_) {
    return Error{WB_FAILED_PRECONDITION,
                 what + ": the session of " + name + " belongs to process " +
                     std::to_string(process_) + ", not to its child " + std::to_string(::getpid()) +
                     "; a child after fork joins for itself",
                 {}};
  }
  if (left_) return Error{WB_FAILED_PRECONDITION, what + ": " + name + " has left", {}};
  if (role != enrolment_.identity.role) {
    return Error{
        WB_FAILED_PRECONDITION,
        what + ": " + name + " joined as a " + (role == v1::TRAINER ? "rollout" : "trainer"),
        {}};
  }
  return {};
}

Result<void> Session::Leave(const std::string& reason) {
  const std::string what = "Leave";
  Result<void> may = CheckCaller(enrolment_.identity.role, what);
  if (may.ok()) may = CheckText(what + ": the reason", reason);
  if (!may.ok()) return may;
  left_ = true;
  if (!door_.has_value()) return Error{WB_UNAVAILABLE, what + ": no daemon is joined", {}};
  v1::ClientMessage message;
  message.mutable_leave()->set_reason(reason);
  const SteadyClock::time_point now = SteadyClock::now();
  const Result<std::uint64_t> posted = door_->Post(std::move(message), -1, now);
  Result<v1::DaemonMessage> answer =
      posted.ok() ? door_->Next(now) : Result<v1::DaemonMessage>(posted.error());
  // It ends the connection when it has taken the reason.
  while (answer.ok() && TakeUnasked(*answer)) answer = door_->Next(now);
  Disconnect();
  if (answer.ok()) return ErrorFromWire(answer->status());
  if (posted.ok() && answer.error().code == WB_UNAVAILABLE) return {};
  return Error{answer.error().code, what + ": " + answer.error().message, {}};
}

void Session::Disconnect() {
  if (publication_.has_value() && !publication_->end.has_value()) {
    publication_->end =
        Error{WB_UNAVAILABLE,
              "daemon at " + enrolment_.identity.socket + " is lost before the end of " +
                  publication_->call.what + ", whose outcome is unknown",
              {DaemonDetail("GONE", node_, publication_->call.elapsed())}};
  }
  door_.reset();
  id_.clear();
  node_.clear();
}

Result<void> Session::EnsureJoined(Deadline deadline) {
  const auto take = [this](const v1::DaemonMessage& message) { return TakeUnasked(message); };
  if (door_.has_value() && door_->Alive(take)) return {};
  Disconnect();
  if (quarantine_.has_value() && quarantine_->DaemonEnded()) EndQuarantine();
  Result<void> joined = Rejoin(std::min(deadline, SteadyClock::now() + join_timeout_));
  if (joined.ok() || !quarantine_.has_value()) return joined;
  Error error = joined.error();
  error.message += "; " + QuarantineText();
  return error;
}

Result<void> Session::Rejoin(Deadline deadline) {
  const SteadyClock::time_point start = SteadyClock::now();
  Result<OpenedSession> opened = OpenSession(enrolment_, held_, deadline);
  if (!opened.ok()) return NamingDaemon(opened.error(), start);
  if (quarantine_.has_value() && !quarantine_->EndedByJoin(opened->daemon)) {
    return Error{
        WB_FAILED_PRECONDITION, "another daemon serves " + enrolment_.identity.socket + " now", {}};
  }
  EndQuarantine();
  door_ = std::move(opened->door);
  id_ = std::move(opened->id);
  node_ = std::move(opened->node);
  daemon_ = opened->daemon;
  Hold(opened->held);
  return {};
}

void Session::Isolate(const Call& call) {
  constexpr Milliseconds kPatience{100};  // between a connection's end and its process's
  Quarantine quarantine(enrolment_.memory(), std::move(lost_), daemon_, call.what);
  if (quarantine.DaemonEnded(kPatience)) {
    quarantine.End();
  } else {
    quarantine_.emplace(std::move(quarantine));
  }
}

void Session::EndQuarantine() {
  if (!quarantine_.has_value()) return;
  quarantine_->End();
  quarantine_.reset();
}

std::string Session::QuarantineText() const {
  return "memory of " + enrolment_.identity.name() + " may still " +
         (enrolment_.identity.role == v1::TRAINER ? "be read" : "change") + ": " +
         quarantine_->Why();
}

/// Ends the connection: with it the lease, so that a daemon that is only late stops as well.
Error Session::Lose(const Error& why, const Call& call) {
  const std::string node = node_;
  if (door_.has_value()) lost_ = door_->TakePeer();
  Disconnect();
  const std::string daemon = "daemon at " + enrolment_.identity.socket;
  if (why.code == WB_DEADLINE_EXCEEDED) {
    return Error{WB_DEADLINE_EXCEEDED,
                 daemon + " did not answer " + call.what + " within " + Seconds(call.timeout) +
                     ", nor one second later",
                 {DaemonDetail("LATE", node, call.timeout + kDaemonGrace)}};
  }
  return Error{why.code == WB_INTERNAL ? WB_INTERNAL : WB_UNAVAILABLE,
               daemon + " is lost in " + call.what + ": " + why.message,
               {DaemonDetail("GONE", node, call.elapsed())}};
}

Result<v1::DaemonMessage> Session::NextMessage(Deadline until) {
  Result<v1::DaemonMessage> message = door_->Until(until);
  if (message.ok() && message->id() == 0 && message->status().code() != WB_OK) {
    return Error{WB_UNAVAILABLE, "it ended the session: " + message->status().message(), {}};
  }
  return message;
}

Result<v1::DaemonMessage> Session::Await(std::uint64_t id,
                                         Deadline deadline,
                                         const OnNotice& on_notice) {
  while (true) {
    Result<v1::DaemonMessage> message = NextMessage(deadline + kDaemonGrace);
    if (!message.ok()) return message;
    if (message->id() == 0) {
      TakeOutcome(*message);
      const Result<bool> awaited = on_notice(*message);
      if (!awaited.ok()) return awaited.error();
      if (*awaited) return message;
      continue;
    }
    // GoAccepted has an id of its own, and is answered only if it is refused.
    const bool refused = message->id() > id && message->id() <= door_->last_id() &&
                         message->status().code() != WB_OK;
    if (message->id() != id && !refused) return Unexpected(*message, id);
    return message;
  }
}

/// One request and its answer, or the notice that `on_notice` says is all that the call waits for.
/// After an error the connection is gone; that the daemon did not
/// grant the request is an answer.
Result<v1::DaemonMessage> Session::Exchange(v1::ClientMessage request,
                                            const Call& call,
                                            const OnNotice& on_notice) {
  const Result<std::uint64_t> id = door_->Post(std::move(request), -1, call.deadline);
  if (!id.ok()) return Lose(id.error(), call);
  Result<v1::DaemonMessage> answer = Await(*id, call.deadline, on_notice);
  if (!answer.ok()) return Lose(answer.error(), call);
  return answer;
}

Result<std::uint64_t> Session::WaitForVersion(std::uint64_t at_least, Milliseconds timeout) {
  const Call call = CallOf("WaitForVersion", at_least, timeout);
  if (Result<void> may = CheckCaller(v1::ROLLOUT, call.what); !may.ok()) return may.error();
  Result<std::uint64_t> version = AskForVersion(at_least, call);
  const bool whole = held_.state != WB_MEMORY_INVALID && held_.state != WB_MEMORY_IN_DOUBT;
  if (version.ok() || whole) return version;
  Error error = version.error();
  error.message += "; memory of " + enrolment_.identity.name() + " is " + MemoryText();
  return error;
}

Result<std::uint64_t> Session::AskForVersion(std::uint64_t at_least, const Call& call) {
  if (Result<void> joined = EnsureJoined(call.deadline); !joined.ok()) return joined.error();
  v1::ClientMessage request;
  request.mutable_wait_for_version()->set_at_least(at_least);
  Result<v1::DaemonMessage> answer = Exchange(std::move(request), call, IgnoreNotice);
  if (!answer.ok()) return answer.error();
  if (answer->status().code() != WB_OK) return ErrorFromWire(answer->status());
  const std::uint64_t version = answer->wait_for_version().version();
  if (!answer->has_wait_for_version() || version < std::max<std::uint64_t>(at_least, 1)) {
    return Lose(Unexpected(*answer, answer->id()), call);
  }
  return version;
}

Result<v1::ReceiveReply> Session::Receive(std::uint64_t version, Milliseconds timeout) {
  const Call call = CallOf("Receive", version, timeout);
  if (Result<void> may = CheckCaller(v1::ROLLOUT, call.what); !may.ok()) return may.error();
  if (Result<void> fits = CheckVersion(call); !fits.ok()) return fits.error();
  Result<void> joined = EnsureJoined(call.deadline);
  if (!joined.ok()) return NotReceived(joined.error(), version, /*go=*/false);
  bool go = false;
  Result<v1::ReceiveReply> reply = Land(version, call, go);
  if (!reply.ok()) {
    if (go && !door_.has_value() && held_.state != WB_MEMORY_IN_DOUBT) Isolate(call);
    return NotReceived(reply.error(), version, go);
  }
  Hold(HeldMemory{WB_MEMORY_VALID, version, 0});
  return reply;
}

/// `go` is set as soon as the daemon is told that it may write.
Result<v1::ReceiveReply> Session::Land(std::uint64_t version, const Call& call, bool& go) {
  v1::ClientMessage request;
  request.mutable_receive()->set_version(version);
  Result<v1::DaemonMessage> answer = Exchange(
      std::move(request), call,
      [this, &call, &go](const v1::DaemonMessage& notice) { return OnLanding(notice, call, go); });
  if (!answer.ok()) return answer.error();
  if (answer->status().code() != WB_OK) {
    const bool undecided = answer->receive().in_doubt();
    if (go && held_.state == WB_MEMORY_IN_DOUBT && !undecided) Hold({WB_MEMORY_INVALID, 0, 0});
    return ErrorFromWire(answer->status());
  }
  const v1::ReceiveReply& reply = answer->receive();
  if (!answer->has_receive() || reply.version() != version) {
    return Lose(Unexpected(*answer, answer->id()), call);
  }
  if (!go && reply.bytes_received() > 0) {
    go = true;
    Hold(HeldMemory{WB_MEMORY_INVALID, 0, 0});
    return Lose(Error{WB_INTERNAL, "it wrote without having asked", {}}, call);
  }
  return reply;
}

/// A notice for another version is late: its Receive has ended. What is not accepted is not
/// written. None of them ends the call.
Result<bool> Session::OnLanding(const v1::DaemonMessage& notice, const Call& call, bool& go) {
  if (notice.has_go() && notice.go().version() == call.version) {
    go = true;
    const Result<void> accepted = AcceptGo(call.version, call.deadline);
    if (!accepted.ok()) return accepted.error();
  }
  if (notice.has_staged() && notice.staged().version() == call.version && go) {
    Hold(HeldMemory{WB_MEMORY_IN_DOUBT, call.version, notice.staged().attempt()});
  }
  return false;
}

void Session::TakeOutcome(const v1::DaemonMessage& notice) {
  const v1::OutcomeNotice& outcome = notice.outcome();
  if (held_.state != WB_MEMORY_IN_DOUBT || outcome.version() != held_.version) return;
  if (!notice.has_outcome()) return;
  Hold(Decided(held_, outcome.committed()));
}

Result<void> Session::AcceptGo(std::uint64_t version, Deadline deadline) {
  // Before the daemon may write, not after: whatever happens from here on, the memory is not the
  // version before.
  Hold(HeldMemory{WB_MEMORY_INVALID, 0, 0});
  v1::ClientMessage accepted;
  accepted.mutable_go_accepted()->set_version(version);
  const Result<std::uint64_t> posted = door_->Post(std::move(accepted), -1, deadline);
  if (!posted.ok()) return posted.error();
  return {};
}

Error Session::NotReceived(Error why, std::uint64_t version, bool go) const {
  const std::string memory = "memory of " + enrolment_.identity.name() + " is ";
  if (go && held_.state == WB_MEMORY_IN_DOUBT) {
    why.message = memory + "in doubt: version " + std::to_string(version) +
                  " has landed, its outcome is unknown: " + why.message;
    return why;
  }
  if (go) {
    why.message = memory + (quarantine_.has_value() ? "invalid and may still change" : "invalid") +
                  ": version " + std::to_string(version) + " failed: " + why.message;
    return why;
  }
  why.message += "; " + memory + MemoryText();
  return why;
}

std::string Session::MemoryText() const {
  switch (held_.state) {
    case WB_MEMORY_VALID:
      return "unchanged: it holds version " + std::to_string(held_.version);
    case WB_MEMORY_INVALID:
      return "invalid as before";
    case WB_MEMORY_IN_DOUBT:
      return "in doubt as before about version " + std::to_string(held_.version);
    default:
      return "unchanged: it holds no version";
  }
}

}  // namespace wb::client
