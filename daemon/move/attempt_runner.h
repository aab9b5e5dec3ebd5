#pragma once

#include <functional>

#include "daemon/move/attempt_work.h"
#include "daemon/move/snapshot_work.h"
#include "planner/model/ids.h"
#include "transport/memory/region.h"

namespace wb {

/// What executes attempts and takes snapshots for the coordinator: the mover; a fake in the
/// coordinator's tests. None of the calls blocks or calls back before it returns; what happens is
/// told by MoverEvents.
///
/// An attempt goes Prepare -> OnPrepared -> Go -> OnStaged -> Finish -> OnEnded. OnFailed may come
/// instead of OnPrepared or OnStaged, or after OnStaged while chunks still go out to others. Abort
/// is legal at any time and always answered by OnEnded, once.
class AttemptRunner {
 public:
  virtual ~AttemptRunner() = default;
  /// The coordinator numbers its regions from 1 up; ids with the top bit set are the runner's own
  /// (arenas).
  virtual void AddRegion(RegionId id, Region region) = 0;
  /// Unmaps once no attempt uses it; then calls `removed`, on any thread. Attempts prepared from
  /// now on cannot use it.
  virtual void RemoveRegion(RegionId id, std::function<void()> removed) = 0;
  /// Preparing an attempt again that is known already changes nothing and repeats OnPrepared (or
  /// OnFailed, if it has).
  virtual void Prepare(AttemptWork work) = 0;
  virtual void Go(AttemptId attempt) = 0;
  /// Stops posting, force-closes the endpoints in use, waits for every operation: then OnEnded.
  virtual void Abort(AttemptId attempt) = 0;
  /// The delivery is decided; its state is dropped: then OnEnded. Chunks still going out to others
  /// are not cut: the leader finishes an attempt only after all its daemons staged.
  virtual void Finish(AttemptId attempt) = 0;
  /// Copies; works in the order of their coming, each after the one before. OnSnapshot follows,
  /// once.
  virtual void TakeSnapshot(SnapshotWork work) = 0;
  /// Copies no more of it than is under way: OnSnapshot follows.
  virtual void DropSnapshot(SnapshotId snapshot) = 0;
};

}  // namespace wb
