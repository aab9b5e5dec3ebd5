#pragma once

#include <string>

#include "absl/status/status.h"

#include "daemon/move/coordinate/coordinator_state.h"

namespace wb {

class LocalAttemptEvents {
 public:
  virtual ~LocalAttemptEvents() = default;
  /// Nothing of the attempt touches worker memory any more; it is forgotten.
  virtual void OnAttemptOver() = 0;
};

/// The verb "take part": attempts at this daemon, between the leader's word, the clients' consent
/// and the runner. Called inside turns only.
class LocalAttempts {
 public:
  LocalAttempts(CoordinatorState& state, LocalAttemptEvents& events)
      : state_(state), events_(events) {}

  // The leader's word.
  void Prepare(PrepareAttempt message);
  void Go(AttemptId id);
  void Commit(AttemptId id);
  void Abort(const AbortAttempt& message);

  // The runner's.
  void OnPrepared(AttemptId id);
  void OnStaged(AttemptId id, const BytesByPath& bytes);
  void OnMeasured(AttemptId id, const AttemptTimes& times);
  void OnFailed(AttemptId id, const absl::Status& status);
  void OnEnded(AttemptId id);

  /// Whether an attempt may still read or write the session's memory, or read its snapshot.
  bool Touches(const Session& session) const;
  /// Whether one may still read or write the memory itself.
  bool TouchesMemory(const Session& session) const;
  /// Whether what one reads of the session's snapshot may still be delivered.
  bool NeedsSnapshot(const Session& session) const;
  /// The attempt by which every byte of the session's `version` has landed, while only the leader's
  /// word is missing; else null.
  const LocalAttempt* Staged(const Session& session, Version version) const;
  /// Aborts what touches the session and is not staged, and tells the leader why.
  void AbortFor(const Session& session, const absl::Status& status);
  /// The leader is lost: what is staged here is kept, everything else is aborted.
  void LeaderLost();
  /// The leader's word on a version that the session holds in doubt; the session is told elsewhere.
  void Resolve(Session& session, bool committed);
  /// The session ends: nobody waits for what an attempt without leader has staged for it.
  void Forget(const Session& session);

 private:
  LocalAttempt* Find(AttemptId id);
  /// Finds it in `state`, or counts the message.
  LocalAttempt* Expect(AttemptId id, LocalState state);
  absl::Status TryPrepare(PrepareAttempt message);
  absl::StatusOr<HeldPlan*> PlanFor(PrepareAttempt& message);
  absl::Status CheckReceivers(const LocalAttempt& attempt) const;
  void Ask(LocalAttempt& attempt);
  void OnGoAccepted(AttemptId id, const SessionId& session);
  void OnGoTimeout(AttemptId id);
  void StartMoving(LocalAttempt& attempt) const;
  void Fail(LocalAttempt& attempt, const absl::Status& status);
  void BeginAbort(LocalAttempt& attempt);
  /// With the memory that a delivery of `version` reads and writes.
  LocalWorkers WorkersOf(const std::string& job, Version version) const;
  void AddBytes(const LocalAttempt& attempt);
  void NoteStaged(const LocalAttempt& attempt);
  void SettleReceivers(const LocalAttempt& attempt, bool committed);
  void NoteCommit(const LocalAttempt& attempt);
  void ReviewOrphans();

  CoordinatorState& state_;
  LocalAttemptEvents& events_;
};

}  // namespace wb
