#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/move_times.h"
#include "daemon/state/cluster_messages.h"
#include "planner/model/registration.h"
#include "transport/loop/timers.h"
#include "transport/memory/region.h"

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
  AttemptId attempt;  // by which held_version came, when memory is in doubt
  Registration registration;
  std::vector<OpenedBuffer> buffers;  // one per buffer of the layout, same order
  /// Of a trainer that will publish snapshots: for each buffer the daemon's own memory for its
  /// copy, of no bytes where no piece uses it.
  std::optional<std::vector<Region>> snapshots;
  ContentsId contents;  // of the registration; may be left out
  /// Runs once, on any thread, when the session has ended, or was not opened, and nothing of its
  /// memory is mapped any more. May be left out.
  std::function<void()> released;
};

/// The answer to an opening.
struct SessionOpened {
  absl::Status status;
  MemoryState memory = MemoryState::kEmpty;  // what was in doubt may be decided meanwhile
};

/// What a trainer asks for with a version.
struct PublishCall {
  PublishOptions options;  // that the leader is told
  bool snapshot = false;   // the deliveries are fed from a copy of the memory, made first
};

struct PublishResult {
  absl::Status status;
  std::vector<GroupOutcome> outcomes;
  std::uint64_t bytes_sent = 0;
  double wait_seconds = 0;
  double move_seconds = 0;
  MoveTimes times;  // of each phase, in the delivery in which it took longest
  double snapshot_seconds = 0;
};

struct ReceiveResult {
  absl::Status status;
  std::uint64_t bytes_received = 0;
  double wait_seconds = 0;
  double move_seconds = 0;
  MoveTimes times;
  bool in_doubt = false;  // with an error: all has landed, the leader's word is missing
};

/// What a worker may ask of its daemon: implemented by the coordinator, called by the local door.
/// Loop-confined: every method and callback runs on the control loop. Every call is answered
/// exactly once, by its deadline at the latest.
class SessionCalls {
 public:
  using Clock = Timers::Clock;

  virtual ~SessionCalls() = default;
  virtual void OpenSession(SessionOpening opening,
                           Clock::time_point deadline,
                           std::function<void(SessionOpened)> done) = 0;
  virtual void Publish(const SessionId& session,
                       Version version,
                       const PublishCall& call,
                       Clock::time_point deadline,
                       std::function<void(PublishResult)> done) = 0;
  virtual void WaitForVersion(const SessionId& session,
                              Version at_least,
                              Clock::time_point deadline,
                              std::function<void(absl::StatusOr<Version>)> done) = 0;
  virtual void Receive(const SessionId& session,
                       Version version,
                       Clock::time_point deadline,
                       std::function<void(ReceiveResult)> done) = 0;
  /// Ends everything of the session; its regions are unmapped when nothing uses them.
  virtual void CloseSession(const SessionId& session, const std::string& reason) = 0;
};

}  // namespace wb
