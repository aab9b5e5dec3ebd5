#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/move/move_times.h"
#include "daemon/move/snapshot_work.h"
#include "daemon/state/cluster_messages.h"
#include "planner/lower/schedule.h"
#include "planner/model/ids.h"
#include "transport/memory/region.h"

namespace wb {

/// A stream of a delivery as one worker's memory sees it: LocalChunk::parts name buffers, and
/// `regions[buffer]` with `offsets[buffer]` says where each lies.
struct BoundStream {
  LocalStream stream;
  std::vector<RegionId> regions;       // one per buffer of the layout
  std::vector<std::uint64_t> offsets;  // of each buffer in its region, bytes
};

/// A stream's number within its delivery: both ends compute it from the plan part they hold. A
/// delivery has one trainer group and one rollout group, so the two ranks name the pair; ranks are
/// below kMaxWorkers = 65536. Numbers are not dense.
constexpr std::uint32_t StreamNumber(std::int32_t src_rank, std::int32_t dst_rank) {
  return static_cast<std::uint32_t>(src_rank) << 16 | static_cast<std::uint32_t>(dst_rank);
}

/// The ranks that StreamNumber names.
constexpr std::int32_t SourceRank(std::uint32_t stream_number) {
  return static_cast<std::int32_t>(stream_number >> 16);
}
constexpr std::int32_t DestinationRank(std::uint32_t stream_number) {
  return static_cast<std::int32_t>(stream_number & 0xFFFF);
}

/// Chunks to send to a peer daemon; numbered by StreamNumber.
struct OutStream {
  std::uint32_t stream_number = 0;
  std::string peer_node;
  BoundStream source;
};

/// Chunks that a peer daemon will send. Numbered as in OutStream; no number twice.
struct InStream {
  std::uint32_t stream_number = 0;
  std::string peer_node;
  BoundStream destination;
};

/// Both ends are ours: one copy, region to region.
struct LocalCopy {
  BoundStream source;
  BoundStream destination;
  std::uint32_t stream_number = 0;
};

/// A daemon's share of one delivery. Everything is lowered; nothing is looked up while it moves.
struct AttemptWork {
  AttemptId attempt;
  Version version;
  std::string job;
  std::string group;               // of the destinations: lanes are kept per (peer, job, group)
  std::vector<PeerAddress> peers;  // at least those that `out` and `in` name
  std::vector<OutStream> out;
  std::vector<InStream> in;
  std::vector<LocalCopy> copies;
};

/// What the mover reports. Called on its thread, from within the mover: an implementation only
/// posts, and never calls back.
class MoverEvents {
 public:
  virtual ~MoverEvents() = default;
  /// Peers are connected, regions checked: Go may come.
  virtual void OnPrepared(AttemptId attempt) = 0;
  /// Every byte that lands at this daemon has landed and was checked (at once after Go for an
  /// attempt that lands nothing here).
  virtual void OnStaged(AttemptId attempt, const BytesByPath& bytes) = 0;
  /// Where the attempt's time has gone so far. Told before OnStaged, when all of the destinations'
  /// is known, and before the OnEnded of a Finish, when all is.
  virtual void OnMeasured(AttemptId attempt, const AttemptTimes& times) = 0;
  /// The attempt cannot succeed; the first reason. Abort follows from the leader.
  virtual void OnFailed(AttemptId attempt, const absl::Status& status) = 0;
  /// After Abort or Finish: nothing of the attempt reads or writes worker memory any more.
  virtual void OnEnded(AttemptId attempt) = 0;
  /// The end of a TakeSnapshot: nothing of it reads or writes any more. OK: all is copied.
  virtual void OnSnapshot(SnapshotId snapshot, const absl::Status& status) = 0;
};

}  // namespace wb
