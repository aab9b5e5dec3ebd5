#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/coordinate/coordinator_state.h"
#include "daemon/move/coordinate/local_attempts.h"
#include "daemon/move/coordinate/snapshots.h"

namespace wb {

/// The verb "wait": Publish, Receive and WaitForVersion of workers, from the call to its one
/// answer. A call whose deadline passes gives up at the leader and is answered when the leader has
/// ended it, or after the grace. Called inside turns only.
class Calls final : public LocalAttemptEvents {
 public:
  explicit Calls(CoordinatorState& state)
      : state_(state), attempts_(state, *this), snapshots_(state) {}

  using Clock = Timers::Clock;

  LocalAttempts& attempts() { return attempts_; }

  struct Request {
    SessionId session;
    Version version;
    Clock::time_point deadline;
  };
  void Publish(const Request& request,
               const PublishCall& call,
               std::function<void(PublishResult)> done);
  void Receive(const Request& request, std::function<void(ReceiveResult)> done);
  void WaitForVersion(const Request& request, std::function<void(absl::StatusOr<Version>)> done);

  // The leader's word.
  void OnVersionOutcome(const VersionOutcome& message);
  void OnVersionOffered(const VersionOffered& message);
  void OnVersionFailed(const VersionFailed& message);
  void OnFinishPublish(const FinishPublish& message);
  void OnFinishReceive(const FinishReceive& message);
  /// Before the attempts hear of it: what is staged is told from what is not.
  void LeaderLost();

  /// The runner's word. The client hears of a snapshot before the leader does.
  void OnSnapshot(SnapshotId snapshot, const absl::Status& status);

  /// Answers all calls of a session that ends.
  void EndCalls(Session& session, const absl::Status& status);
  void OnAttemptOver() override;

 private:
  template <typename Result>
  using Slot = std::optional<PendingCall<Result>> Session::*;

  /// The session that calls; never null. An error when it may not call now.
  absl::StatusOr<Session*> Caller(const SessionId& id);
  template <typename Result>
  bool Begin(const Request& request, Slot<Result> slot, std::function<void(Result)> done);
  template <typename Result>
  void Answer(Session& session, Slot<Result> slot, Result result);
  template <typename Result>
  void OnDeadline(const SessionId& id, Slot<Result> slot);
  template <typename Result>
  void OnGrace(const SessionId& id, Slot<Result> slot);
  template <typename Result>
  void EndForLostLeader(Session& session, Slot<Result> slot, const absl::Status& why);
  /// Answers with `status` once nothing moves any more, or after the grace.
  template <typename Result>
  void End(Session& session, Slot<Result> slot, const absl::Status& status);
  void ConsiderSnapshot(Session& session);
  void EndSnapshot(Session& session, const absl::Status& why);
  absl::Status LateSnapshot(const Session& session) const;
  template <typename Result>
  void AnswerEnded(Session& session, Slot<Result> slot);
  static void NoteSpent(Session& session, Version version);
  /// Answers a Publish that the leader has answered, with what is measured by now.
  void AnswerFinished(Session& session);
  /// Answers a Receive whose commit this daemon has heard of; false when it has not.
  bool AnswerCommitted(Session& session);
  void AwaitDecision(Session& session);
  /// Answers a staged Receive as one in doubt; false when it is not staged.
  bool AnswerInDoubt(Session& session, const std::string& why);
  void OnWaitDeadline(const SessionId& id);
  /// Whether a Finish message is about a call that was answered before, without it.
  static bool IsLate(std::multiset<Version>& late, Version version);
  void CloseOffer(const GroupKey& key, Version version);

  CoordinatorState& state_;
  LocalAttempts attempts_;
  Snapshots snapshots_;
};

}  // namespace wb
