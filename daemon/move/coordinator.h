#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/mover.h"
#include "daemon/move/session_calls.h"
#include "daemon/state/cluster_messages.h"
#include "transport/loop/event_loop.h"

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

/// Asks a client to declare its memory invalid before the first byte lands in place; `accepted` is
/// called when it has. Implemented by the local door.
class SessionNotices {
 public:
  virtual ~SessionNotices() = default;
  virtual void NotifyGo(const SessionId& session,
                        Version version,
                        std::function<void()> accepted) = 0;
};

/// A daemon's side of publications and deliveries: sessions with their regions, their calls in
/// progress, the attempts they are part of. Loop-confined: every method and callback runs on the
/// control loop. Every call is answered exactly once, by its deadline at the latest.
class Coordinator final : public SessionCalls, public LeaderEvents {
 public:
  Coordinator(EventLoop& loop, LeaderLink& leader, std::string node, Incarnation incarnation);
  ~Coordinator() override;
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Late wiring: the mover and the door call back into the coordinator.
  void SetMover(Mover* mover);
  void SetNotices(SessionNotices* notices);

  // From the local door.
  void OpenSession(SessionOpening opening,
                   Clock::time_point deadline,
                   std::function<void(absl::Status)> done) override;
  void Publish(const SessionId& session,
               Version version,
               const std::string& label,
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
  void OnFailed(AttemptId attempt, const absl::Status& status);
  void OnEnded(AttemptId attempt);

  /// Answers every call in progress with CANCELLED and drops all sessions.
  void Drain();
  std::size_t sessions() const;
  /// Sentences: what is waited for, since when.
  std::vector<std::string> Waits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
