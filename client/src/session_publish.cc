// What a trainer's session does with versions.
#include <algorithm>
#include <utility>

#include "client/src/session.h"

namespace wb::client {
namespace {

/// What `said` says already is not said again.
std::string OutcomeText(const v1::GroupOutcome& outcome, const std::string& said) {
  std::string text = outcome.group() + ": " + wb_status_name(outcome.status().code());
  const std::string& message = outcome.status().message();
  if (!message.empty() && message != said) text += ": " + message;
  return text;
}

Result<void> CheckPublish(const Call& call, const PublishWish& wish) {
  if (Result<void> fits = CheckVersion(call); !fits.ok()) return fits;
  if (Result<void> text = CheckText(call.what + ": the label", wish.label); !text.ok()) return text;
  for (const std::string& group : wish.required_groups) {
    Result<void> text = CheckUtf8(call.what + ": a required group", group);
    if (!text.ok()) return text;
  }
  return {};
}

/// What does not fit is said before anything is sent: it is no fault of the connection.
Result<v1::ClientMessage> MakeRequest(const Call& call, const PublishWish& wish) {
  constexpr std::size_t kEnvelopeBytes = 64;  // id and timeout, which Post adds
  constexpr std::size_t kMost = kMaxPacketBytes - kEnvelopeBytes;
  if (Result<void> fits = CheckPublish(call, wish); !fits.ok()) return fits.error();
  v1::ClientMessage request;
  request.mutable_publish()->set_version(call.version);
  request.mutable_publish()->set_label(wish.label);
  for (const std::string& group : wish.required_groups) {
    request.mutable_publish()->add_required_groups(group);
  }
  request.mutable_publish()->set_snapshot(wish.snapshot);
  const std::size_t bytes = request.ByteSizeLong();
  if (bytes <= kMost) return request;
  return Error{WB_RESOURCE_EXHAUSTED,
               call.what + ": the label and the required groups make a message of " +
                   std::to_string(bytes) + " bytes, want at most " + std::to_string(kMost),
               {}};
}

/// How a publication ended, from the daemon's answer.
Result<v1::PublishReply> EndOf(const v1::DaemonMessage& answer) {
  if (answer.status().code() == WB_OK) return answer.publish();
  Error failed = ErrorFromWire(answer.status());
  for (const v1::GroupOutcome& outcome : answer.publish().outcomes()) {
    failed.details.push_back(OutcomeText(outcome, failed.message));
  }
  return failed;
}

}  // namespace

Result<v1::PublishReply> Session::Publish(std::uint64_t version,
                                          const PublishWish& wish,
                                          Milliseconds timeout) {
  outcomes_.clear();
  const Call call = CallOf("Publish", version, timeout);
  if (Result<void> may = CheckCaller(v1::TRAINER, call.what); !may.ok()) return may.error();
  Result<v1::ClientMessage> request = MakeRequest(call, wish);
  if (!request.ok()) return request.error();
  if (!AwaitPublication(call.deadline)) return StillMoving(call);
  if (Result<void> joined = EnsureJoined(call.deadline); !joined.ok()) return joined.error();
  Result<v1::DaemonMessage> answer = Exchange(
      std::move(*request), call, [&wish, version](const v1::DaemonMessage& notice) -> Result<bool> {
        return wish.snapshot && notice.has_snapshot() && notice.snapshot().version() == version;
      });
  if (!answer.ok() || answer->status().code() != WB_INVALID_ARGUMENT) {
    // A leader that comes later must know that the number may have been given out.
    Hold(HeldMemory{WB_MEMORY_VALID, std::max(version, held_.version), 0});
  }
  if (!answer.ok()) {
    Error failed = answer.error();
    Isolate(call);
    if (quarantine_.has_value()) failed.message += "; " + QuarantineText();
    return failed;
  }
  if (answer->has_snapshot()) return BeginPublication(*answer, call);
  return TakePublished(*answer, call, wish);
}

/// The memory may be written; the answer is still to come.
v1::PublishReply Session::BeginPublication(const v1::DaemonMessage& notice, const Call& call) {
  TellPrevious();
  publication_ = Publication{call, door_->last_id(), {}, {}, false};
  v1::PublishReply reply;
  reply.set_version(call.version);
  reply.set_snapshot_seconds(notice.snapshot().copy_seconds());
  return reply;
}

Result<v1::PublishReply> Session::TakePublished(const v1::DaemonMessage& answer,
                                                const Call& call,
                                                const PublishWish& wish) {
  outcomes_.assign(answer.publish().outcomes().begin(), answer.publish().outcomes().end());
  Result<v1::PublishReply> end = EndOf(answer);
  if (!end.ok()) return end;
  if (wish.snapshot || end->version() != call.version) {
    return Lose(Unexpected(answer, answer.id()), call);
  }
  TellPrevious();
  return end;
}

void Session::TellPrevious() {
  previous_ = {};
  if (!publication_.has_value() || std::exchange(publication_->told, true)) return;
  previous_.version = publication_->call.version;
  if (publication_->end->ok()) return;
  previous_.code = publication_->end->error().code;
  previous_.message = publication_->end->error().message;
}

Result<v1::PublishReply> Session::WaitPublished(std::uint64_t version, Milliseconds timeout) {
  const Call call = CallOf("WaitPublished", version, timeout);
  if (Result<void> may = CheckCaller(v1::TRAINER, call.what); !may.ok()) return may.error();
  if (!publication_.has_value() || publication_->call.version != version) {
    const std::string last =
        publication_.has_value()
            ? "the last snapshot is of version " + std::to_string(publication_->call.version)
            : "there is no snapshot yet";
    return Error{
        WB_FAILED_PRECONDITION, call.what + ": " + enrolment_.identity.name() + ": " + last, {}};
  }
  if (!AwaitPublication(call.deadline)) return StillMoving(call);
  publication_->told = true;
  outcomes_ = publication_->outcomes;
  return *publication_->end;
}

bool Session::AwaitPublication(Deadline deadline) {
  while (publication_.has_value() && !publication_->end.has_value()) {
    const Deadline last = publication_->call.deadline + kDaemonGrace;
    const Result<v1::DaemonMessage> message = NextMessage(std::min(deadline, last));
    if (message.ok() && TakeUnasked(*message)) continue;
    if (!message.ok() && message.error().code == WB_DEADLINE_EXCEEDED && deadline < last) {
      return false;
    }
    // Only the daemon's own copy is read: the memory needs no quarantine.
    const Error why = message.ok() ? Unexpected(*message, publication_->id) : message.error();
    const Error lost = Lose(why, publication_->call);
    publication_->end =
        Error{WB_UNAVAILABLE, lost.message + "; its outcome is unknown", lost.details};
  }
  return true;
}

Error Session::StillMoving(const Call& call) const {
  return Error{WB_DEADLINE_EXCEEDED,
               call.what + ": version " + std::to_string(publication_->call.version) + " of " +
                   enrolment_.identity.name() + " is still moving from its snapshot after " +
                   Seconds(call.timeout),
               {}};
}

bool Session::TakeUnasked(const v1::DaemonMessage& message) {
  if (message.id() == 0) {
    TakeOutcome(message);
    return true;
  }
  if (!publication_.has_value() || publication_->end.has_value()) return false;
  if (message.id() != publication_->id) return false;
  Result<v1::PublishReply> end = EndOf(message);
  if (end.ok() && end->version() != publication_->call.version) return false;
  publication_->outcomes.assign(message.publish().outcomes().begin(),
                                message.publish().outcomes().end());
  publication_->end = std::move(end);
  return true;
}

}  // namespace wb::client
