#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/attempt_work.h"
#include "daemon/move/failed_chunk.h"
#include "daemon/state/cluster_messages.h"
#include "planner/lower/plan_part.h"
#include "planner/lower/schedule.h"
#include "planner/model/registration.h"

namespace wb {

/// A worker of this node with its memory, as binding needs it.
struct LocalWorker {
  SessionId session;
  Incarnation incarnation;
  Epoch epoch;
  std::shared_ptr<const Registration> registration;
  std::vector<RegionId> regions;       // one per buffer of the layout
  std::vector<std::uint64_t> offsets;  // of each buffer in its region, bytes
};
using LocalWorkers = std::map<WorkerName, LocalWorker>;

/// What one worker sends and receives by a plan part, bytes.
struct WorkerBytes {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// This daemon's part of a plan, with what has been lowered of it: kept across versions, so that a
/// second update lowers nothing. A lowered stream is used only for the session and epoch that it
/// was lowered for. Loop-confined.
class HeldPlan {
 public:
  HeldPlan(PlanPart part, std::string node, std::uint64_t chunk_bytes);

  const PlanPart& part() const { return part_; }
  WorkerBytes BytesOf(const WorkerName& name) const;
  /// "policy/0 to engine0/1, bytes of q, k and 3 more": whose bytes, and of which tensors, a chunk
  /// carries. Empty for a chunk that the plan does not have here.
  std::string Describe(const FailedChunk& chunk) const;

  /// The work that `message` asks of this daemon. FAILED_PRECONDITION when anything is stale: a
  /// worker without session here, another incarnation or epoch (both numbers named), another
  /// layout; or a peer without address.
  absl::StatusOr<AttemptWork> Bind(const PrepareAttempt& message, const LocalWorkers& workers);
  /// Streams lowered so far; grows only when something was not kept.
  std::uint64_t lowered() const { return lowered_; }

 private:
  struct Lowered {
    SessionId session;
    Epoch epoch;
    LocalStream stream;
  };
  /// The moves of one (src, dst) pair, in plan order.
  struct Pair {
    WorkerIndex src;
    WorkerIndex dst;
    std::vector<Move> moves;
    std::map<StreamEnd, Lowered> ends;
  };

  /// Names of the tensors of a chunk of the pair, in plan order, each once.
  std::vector<std::string> TensorsOf(const Pair& pair, std::uint32_t chunk) const;
  const PlanWorker& worker(WorkerIndex index) const { return part_.workers[index.value()]; }
  absl::Status CheckWorkers(const PrepareAttempt& message, const LocalWorkers& workers) const;
  absl::Status CheckPeers(const PrepareAttempt& message) const;
  /// What one Bind works with: the workers, and their layouts in the part's terms, made once each.
  struct Binding {
    const LocalWorkers& workers;
    std::map<WorkerName, Layout> layouts;
  };
  absl::Status BindPair(Pair& pair, Binding& binding, AttemptWork& work);
  absl::StatusOr<BoundStream> BindEnd(Pair& pair, StreamEnd end, Binding& binding);
  absl::StatusOr<LocalStream> LowerEnd(const Pair& pair,
                                       StreamEnd end,
                                       const WorkerName& name,
                                       Binding& binding) const;

  PlanPart part_;
  std::string node_;
  std::uint64_t chunk_bytes_;
  std::vector<Pair> pairs_;  // those with an end here, in plan order
  std::map<WorkerName, WorkerBytes> bytes_;
  std::uint64_t lowered_ = 0;
};

}  // namespace wb
