#pragma once

#include "daemon/move/coordinate/coordinator_state.h"
#include "daemon/move/snapshot_work.h"

namespace wb {

/// The verb "take a snapshot": of a session inside a Publish that asks for one, while nothing reads
/// the snapshot before. Called inside turns only.
class Snapshots {
 public:
  explicit Snapshots(CoordinatorState& state) : state_(state) {}

  void Begin(Session& session);
  /// Copies no more than is under way, if anything is being copied.
  void Drop(const Session& session) const;
  /// The session whose copying has ended; null when its call was answered before.
  Session* OnEnded(SnapshotId id);
  /// Whether the session's memory may be being copied.
  static bool Copying(const Session& session);

 private:
  CoordinatorState& state_;
};

}  // namespace wb
