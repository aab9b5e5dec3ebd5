#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

#include "daemon/move/execute/attempt.h"
#include "daemon/move/execute/fifo.h"
#include "daemon/move/execute/operation.h"
#include "daemon/move/execute/slot_pool.h"
#include "planner/model/ids.h"
#include "transport/fabric.h"

namespace wb {

struct SenderOptions {
  Incarnation incarnation;   // of this daemon
  int chunks_in_flight = 0;  // per lane
  bool verify = true;        // send checksums
};

/// Sends the chunks of moving attempts: pack unless direct, checksum, post; so many per lane at
/// once. Lanes take turns, one chunk each. A lane that finds no free slot waits in line for one.
///
/// What goes wrong is noted in the attempt (Attempt::Fail). Loop-confined.
class Sender {
 public:
  Sender(Fabric& fabric, OperationTable& operations, SlotPool& slots, SenderOptions options)
      : fabric_(fabric), operations_(operations), slots_(slots), options_(options) {}

  /// Posts the hello of a new lane; it ends in OnSent.
  void Greet(OutLane& lane);
  /// The attempt has started to move.
  void Start(Attempt& attempt);
  void OnPacked(Operation& operation, std::uint64_t checksum);
  void OnSent(Operation& operation, const absl::Status& status);
  /// Posts what may be posted.
  void Pump();
  /// The attempt posts no more; what is in flight ends by OnPacked and OnSent.
  void Stop(const Attempt& attempt);

 private:
  void Queue(OutLane& lane);
  void Visit(OutLane& lane);
  void Begin(OutLane& lane);
  void Post(Operation& operation);
  /// A new lane: what it runs on goes to the log and into its counters.
  void NoteLane(Lane& lane) const;
  void End(Operation& operation);

  Fabric& fabric_;
  OperationTable& operations_;
  SlotPool& slots_;
  SenderOptions options_;
  Fifo<OutLane*> runnable_;
  Fifo<OutLane*> starved_;  // want a slot
};

}  // namespace wb
