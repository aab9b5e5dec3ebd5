#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/session_calls.h"
#include "daemon/move/snapshot_work.h"
#include "daemon/state/cluster_messages.h"
#include "planner/model/registration.h"
#include "transport/loop/timers.h"

namespace wb {

/// Of a Publish from a snapshot: the way to it.
struct PendingSnapshot {
  PublishOptions options;             // for the leader, once it is taken
  std::optional<SnapshotId> copying;  // until the runner has ended it
  std::optional<double> seconds;      // that it took, once it is taken
};

/// A call of a worker that has not been answered. Answered exactly once: by Coordinator's Answer,
/// which takes it out first.
template <typename Result>
struct PendingCall {
  Version version;  // the one asked for; at least, for WaitForVersion
  Timers::Clock::time_point since;
  Timers::Clock::duration timeout{};
  TimerId timer;  // its deadline; then its grace
  std::function<void(Result)> done;
  /// The deadline has passed: the leader was told, and the answer waits for the abort.
  bool gave_up = false;
  /// The answer, for which no leader's word comes: kept until nothing moves any more.
  std::optional<absl::Status> ending;
  std::optional<PendingSnapshot> snapshot;  // Publish: from one
  bool committed = false;                   // Receive: the bytes are the version asked for
  std::uint64_t bytes = 0;                  // of committed deliveries
  MoveTimes times;  // of each phase, in the delivery in which it took longest
  /// The leader's answer, kept until nothing of the version touches the memory any more.
  std::optional<Result> answer;
};

/// Memory of the daemon's own for the copy of a trainer's.
struct SnapshotMemory {
  std::vector<RegionId> regions;    // one per buffer of the layout
  std::vector<SnapshotPart> parts;  // what goes there
  Version version;                  // that it holds whole; 0: none
};

/// A connected worker: what it registered, where its memory is, what it waits for.
struct Session {
  /// Whether the present leader has it as a member.
  enum class Membership : std::uint8_t { kUnknown, kMember, kRefused };

  SessionId id;
  Incarnation incarnation;
  std::int32_t world_size = 0;
  Epoch epoch;
  Version held_version;
  MemoryState memory = MemoryState::kEmpty;
  AttemptId attempt;  // by which held_version came, when memory is in doubt
  std::shared_ptr<const Registration> registration;
  ContentsId contents;            // of the registration
  std::vector<RegionId> regions;  // one per buffer of the layout
  std::vector<std::uint64_t> offsets;
  std::optional<SnapshotMemory> snapshot;  // of a trainer that joined for it
  std::function<void()> released;          // as in SessionOpening
  Membership membership = Membership::kUnknown;
  absl::Status refusal;  // kRefused: by a leader that came later
  std::optional<PendingCall<SessionOpened>> opening;
  std::optional<PendingCall<PublishResult>> publish;
  std::optional<PendingCall<ReceiveResult>> receive;
  std::optional<PendingCall<absl::StatusOr<Version>>> wait;
  /// Versions of calls that were answered without the leader: its word on each is still to come,
  /// and must not be taken for an answer to a later call.
  std::multiset<Version> late_publishes;
  std::multiset<Version> late_receives;

  /// Inside a Publish from a snapshot that is not taken yet: the leader knows nothing of it.
  bool awaits_snapshot() const {
    return publish.has_value() && publish->snapshot.has_value() &&
           !publish->snapshot->seconds.has_value();
  }
  const std::string& job() const { return registration->job; }
  const WorkerName& name() const { return registration->layout.name; }
  Role role() const { return registration->layout.role; }
};

}  // namespace wb
