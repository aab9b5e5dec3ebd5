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
#include "daemon/state/cluster_messages.h"
#include "planner/model/registration.h"
#include "transport/loop/event_loop.h"

namespace wb {

/// A buffer of a worker, opened: `bytes` from `offset` of a region.
struct OpenedBuffer {
  std::string name;
  Region region;
  std::uint64_t offset = 0;
};

/// Everything a session brings at its opening, checked at the door.
struct SessionOpening {
  SessionId session;
  Incarnation incarnation;
  std::int32_t world_size = 0;
  Epoch epoch;
  Version held_version;
  MemoryState memory = MemoryState::kEmpty;
  Registration registration;
  std::vector<OpenedBuffer> buffers;  // one per buffer of the layout, same order
};

struct PublishResult {
  absl::Status status;
  std::vector<GroupOutcome> outcomes;
  std::uint64_t bytes_sent = 0;
  double wait_seconds = 0;
  double move_seconds = 0;
};

struct ReceiveResult {
  absl::Status status;
  std::uint64_t bytes_received = 0;
  double wait_seconds = 0;
  double move_seconds = 0;
};

/// The way to the leader. Post never blocks; while there is no leader, messages are dropped: the
/// coordinator replays everything on OnLeaderConnected.
class LeaderLink {
 public:
  virtual ~LeaderLink() = default;
  virtual void Send(ToLeader message) = 0;
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
class Coordinator {
 public:
  using Clock = EventLoop::Clock;

  Coordinator(EventLoop& loop, LeaderLink& leader, std::string node, Incarnation incarnation);
  ~Coordinator();

  /// Late wiring: the mover and the door call back into the coordinator.
  void SetMover(Mover* mover);
  void SetNotices(SessionNotices* notices);

  // From the local door.
  void OpenSession(SessionOpening opening,
                   Clock::time_point deadline,
                   std::function<void(absl::Status)> done);
  void Publish(const SessionId& session,
               Version version,
               const std::string& label,
               Clock::time_point deadline,
               std::function<void(PublishResult)> done);
  void WaitForVersion(const SessionId& session,
                      Version at_least,
                      Clock::time_point deadline,
                      std::function<void(absl::StatusOr<Version>)> done);
  void Receive(const SessionId& session,
               Version version,
               Clock::time_point deadline,
               std::function<void(ReceiveResult)> done);
  /// Ends everything of the session; its regions are unmapped when nothing uses them.
  void CloseSession(const SessionId& session, const std::string& reason);

  // From the leader link.
  void OnLeaderConnected();
  void OnLeaderLost(const absl::Status& why);
  void OnLeaderMessage(FromLeader message);

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
