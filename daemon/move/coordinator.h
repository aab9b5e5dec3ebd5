#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/attempt_runner.h"
#include "daemon/move/session_calls.h"
#include "daemon/state/cluster_messages.h"
#include "planner/lower/schedule.h"
#include "transport/loop/timers.h"

namespace wb {

/// The way to the leader. Post never blocks; while there is no leader, messages are dropped: the
/// coordinator replays everything on OnLeaderConnected.
class LeaderLink {
 public:
  virtual ~LeaderLink() = default;
  virtual void Send(ToLeader message) = 0;
};

/// What the way to the leader reports; called on the control loop. Messages come only between
/// OnLeaderConnected and OnLeaderLost.
class LeaderEvents {
 public:
  virtual ~LeaderEvents() = default;
  virtual void OnLeaderConnected() = 0;
  virtual void OnLeaderLost(const absl::Status& why) = 0;
  virtual void OnLeaderMessage(FromLeader message) = 0;
};

/// What the coordinator asks of the local door, for the daemon's clients.
class SessionNotices {
 public:
  virtual ~SessionNotices() = default;
  /// Asks a client to declare its memory invalid before the first byte lands in place; `accepted`
  /// is called when it has.
  virtual void NotifyGo(const SessionId& session,
                        Version version,
                        std::function<void()> accepted) = 0;
  /// All has landed: a client that loses us from here on is in doubt about the version. It is on
  /// its way when this returns.
  virtual void NotifyStaged(const SessionId& session, Version version, AttemptId attempt) = 0;
  /// What became of a version that the client holds in doubt.
  virtual void NotifyOutcome(const SessionId& session, Version version, bool committed) = 0;
  /// The client's memory has been copied for a Publish from a snapshot, in so many seconds: nothing
  /// reads it any more.
  virtual void NotifySnapshot(const SessionId& session, Version version, double seconds) = 0;
  /// Closes now every session whose worker has gone, also where the loop has not told yet.
  virtual void CloseGone() = 0;
};

struct CoordinatorOptions {
  std::string node;         // this daemon's name in the cluster
  std::string host = {};    // that it runs on
  Incarnation incarnation;  // of this daemon
  /// As the mover's, and the same on all daemons: both ends of a stream cut it alike.
  std::uint64_t chunk_bytes = kDefaultChunkBytes;
  std::chrono::milliseconds go_timeout{2'000};  // clients to accept a GoNotice
  /// A Receive that is staged when the leader is lost waits this long for the next leader's word.
  std::chrono::milliseconds decision_grace{5'000};
  /// After its deadline a call waits this long for the abort to be confirmed. Below the second
  /// that clients wait longer than their deadline.
  std::chrono::milliseconds grace{800};
};

/// A daemon's side of publications and deliveries: sessions with their regions, their calls in
/// progress, the attempts they are part of. Loop-confined: every method and callback runs on the
/// control loop. Every call is answered exactly once, by its deadline and the grace at the latest.
class Coordinator final : public SessionCalls, public LeaderEvents {
 public:
  /// `timers` and `leader` must outlive the coordinator.
  Coordinator(Timers& timers, LeaderLink& leader, CoordinatorOptions options);
  ~Coordinator() override;
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Late wiring, before the first call: the mover and the door call back into the coordinator.
  void SetRunner(AttemptRunner* runner);
  void SetNotices(SessionNotices* notices);

  // From the local door.
  void OpenSession(SessionOpening opening,
                   Clock::time_point deadline,
                   std::function<void(SessionOpened)> done) override;
  void Publish(const SessionId& session,
               Version version,
               const PublishCall& call,
               Clock::time_point deadline,
               std::function<void(PublishResult)> done) override;
  void WaitForVersion(const SessionId& session,
                      Version at_least,
                      Clock::time_point deadline,
                      std::function<void(absl::StatusOr<Version>)> done) override;
  void Receive(const SessionId& session,
               Version version,
               Clock::time_point deadline,
               std::function<void(ReceiveResult)> done) override;
  void CloseSession(const SessionId& session, const std::string& reason) override;

  // From the leader link.
  void OnLeaderConnected() override;
  void OnLeaderLost(const absl::Status& why) override;
  void OnLeaderMessage(FromLeader message) override;

  // From the mover (posted to the control loop).
  void OnPrepared(AttemptId attempt);
  void OnStaged(AttemptId attempt, const BytesByPath& bytes);
  void OnMeasured(AttemptId attempt, const AttemptTimes& times);
  void OnFailed(AttemptId attempt, const absl::Status& status);
  void OnEnded(AttemptId attempt);
  void OnSnapshot(SnapshotId snapshot, const absl::Status& status);

  /// Answers every call in progress with CANCELLED and drops all sessions.
  void Drain();
  std::size_t sessions() const;
  /// Whether an attempt at a delivery is here that has not ended.
  bool updating() const;
  /// Messages dropped because they spoke of unknown attempts or calls, or out of turn.
  std::uint64_t stale_messages() const;
  /// Sentences: what is waited for, since when.
  std::vector<std::string> Waits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
