#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/attempt_work.h"
#include "daemon/move/execute/copiers.h"
#include "daemon/move/execute/lane_table.h"
#include "daemon/move/execute/local_copier.h"
#include "daemon/move/execute/operation.h"
#include "daemon/move/execute/receiver.h"
#include "daemon/move/execute/region_uses.h"
#include "daemon/move/execute/sender.h"
#include "daemon/move/execute/slot_pool.h"
#include "daemon/move/execute/snapshot_copier.h"
#include "daemon/move/mover_counters.h"
#include "transport/copy/copier.h"
#include "transport/fabric.h"
#include "transport/memory/region.h"

namespace wb {

struct ExecutorOptions {
  std::string node;
  Incarnation incarnation;
  std::uint64_t arena_bytes = 0;  // half for what goes out, half for what comes in
  std::uint64_t chunk_bytes = 0;  // of a slot
  int chunks_in_flight = 0;       // per lane
  int local_copies_at_once = 0;   // per attempt, and of snapshots
  bool verify = true;
  OperationTable::Now now = &Timers::Clock::now;
};

/// Executes attempts over one fabric: the mover without its thread. Methods are as AttemptRunner's.
///
/// Loop-confined, and makes progress only in Progress: whoever owns it calls that when the fabric's
/// wakeup descriptor or a copier's is readable, and after each call of another method.
/// Invariant: while an attempt is known, its regions stay in the table; after its OnEnded nothing
/// of it reads or writes them.
class Executor {
 public:
  /// What an executor works with. All must outlive it; fabric and copiers are its alone.
  struct Parts {
    Fabric& fabric;
    RegionTable& regions;
    Copiers copiers;
    MoverEvents& events;
  };

  /// Allocates the arena. INVALID_ARGUMENT when it has no two slots.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const Parts& parts,
                                                          const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void AddRegion(RegionId id, Region region);
  void RemoveRegion(RegionId id, std::function<void()> removed);
  void Prepare(AttemptWork work);
  void Go(AttemptId attempt);
  void Abort(AttemptId attempt);
  void Finish(AttemptId attempt);
  void TakeSnapshot(const SnapshotWork& work) { snapshots_.Take(work); }
  void DropSnapshot(SnapshotId snapshot) { snapshots_.Drop(snapshot); }
  /// The snapshots as well.
  void AbortAll();
  /// The fabric is of no use any more.
  void FailAll(const absl::Status& status);

  /// Does what is due; whether anything was.
  bool Progress();
  /// When CloseIdleLanes is due; nothing while no lane is idle.
  std::optional<Timers::Clock::time_point> lanes_idle_until() const { return lanes_.idle_until(); }
  void CloseIdleLanes() { lanes_.CloseIdle(); }
  /// No attempt is left, and no snapshot.
  bool idle() const { return attempts_.empty() && snapshots_.idle(); }
  MoverCounters Counters() const;

 private:
  Executor(const Parts& parts, const ExecutorOptions& options, SlotPool out, SlotPool in);

  void RepeatAnswer(const Attempt& attempt);
  absl::Status Admit(Attempt& attempt);
  void Step(Attempt& attempt, AttemptState to);
  void OnEvent(const FabricEvent& event);
  void OnEndpointFailed(EndpointId endpoint, const absl::Status& status);
  void OnCopied(CopyJob& job);
  void PumpAndReview();
  /// Takes the steps that the attempt is ready for; true when that was its end.
  bool Review(Attempt& attempt);
  void Cut(Attempt& attempt);
  void End(Attempt& attempt);

  Fabric& fabric_;
  RegionTable& regions_;
  const Copiers copiers_;
  MoverEvents& events_;
  const ExecutorOptions options_;

  RegionUses uses_;
  SlotPool out_slots_;
  SlotPool in_slots_;
  OperationTable operations_;
  LaneTable lanes_;
  Sender sender_;
  Receiver receiver_;
  LocalCopier local_;
  SnapshotCopier snapshots_;
  AttemptMap attempts_;

  std::vector<FabricEvent> fabric_events_;  // reused
  std::vector<CopyJob> copied_;             // reused
};

}  // namespace wb
