#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/state/cluster_messages.h"
#include "planner/lower/schedule.h"
#include "planner/model/ids.h"
#include "transport/fabric.h"
#include "transport/memory/region.h"

namespace wb {

/// A stream of a delivery as one worker's memory sees it: LocalChunk::parts name buffers, and
/// `regions[buffer]` with `offsets[buffer]` says where each lies.
struct BoundStream {
  LocalStream stream;
  std::vector<RegionId> regions;       // one per buffer of the layout
  std::vector<std::uint64_t> offsets;  // of each buffer in its region, bytes
};

/// Chunks to send to a peer daemon. `stream_number` is the stream's index among all (src, dst)
/// pairs of the plan part of the *destination* node, so that both ends number it alike.
struct OutStream {
  std::uint32_t stream_number = 0;
  std::string peer_node;
  BoundStream source;
};

/// Chunks that a peer daemon will send.
struct InStream {
  std::uint32_t stream_number = 0;
  std::string peer_node;
  BoundStream destination;
};

/// Both ends are ours: one copy, region to region.
struct LocalCopy {
  BoundStream source;
  BoundStream destination;
};

/// A daemon's share of one delivery. Everything is lowered; nothing is looked up while it moves.
struct AttemptWork {
  AttemptId attempt;
  Version version;
  std::vector<PeerAddress> peers;
  std::vector<OutStream> out;
  std::vector<InStream> in;
  std::vector<LocalCopy> copies;
};

/// What the mover reports; called on its thread, so an implementation only posts.
class MoverEvents {
 public:
  virtual ~MoverEvents() = default;
  /// Peers are connected, regions checked: Go may come.
  virtual void OnPrepared(AttemptId attempt) = 0;
  /// Every byte that lands at this daemon has landed and was checked (at once after Go for an
  /// attempt that lands nothing here).
  virtual void OnStaged(AttemptId attempt, const BytesByPath& bytes) = 0;
  /// The attempt cannot succeed; the first reason. Abort follows from the leader.
  virtual void OnFailed(AttemptId attempt, const absl::Status& status) = 0;
  /// After Abort or Finish: nothing of the attempt reads or writes worker memory any more.
  virtual void OnEnded(AttemptId attempt) = 0;
};

struct MoverOptions {
  std::string interface;                    // network device the fabric binds to
  std::string transports = "tcp";           // "tcp" ("shm" and "auto" come later)
  std::uint64_t arena_bytes = 64ULL << 20;  // slots for packed chunks
  std::uint64_t chunk_bytes = kDefaultChunkBytes;
  int chunks_in_flight = 4;  // per lane
  int copy_threads = 1;
  bool verify = true;  // integrity: wire
};

/// Lane counters for status.
struct LaneCounters {
  std::string peer_node;
  std::string fabric;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

/// The thread that owns the fabric and executes attempts. All methods are thread-safe: they post
/// to its loop. Chunks that belong to no prepared attempt are refused and counted.
class Mover {
 public:
  static absl::StatusOr<std::unique_ptr<Mover>> Start(const MoverOptions& options,
                                                      MoverEvents& events);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  /// How peers reach the fabric.
  const std::string& address() const;
  const std::string& fabric() const;
  void AddRegion(RegionId id, Region region);
  /// Unmaps once no attempt uses it; then calls `removed` on the mover's thread.
  void RemoveRegion(RegionId id, std::function<void()> removed);
  void Prepare(AttemptWork work);
  void Go(AttemptId attempt);
  /// Stops posting, force-closes the endpoints in use, waits for every operation: then OnEnded.
  void Abort(AttemptId attempt);
  /// The delivery is decided; its state is dropped: then OnEnded. Chunks still going out to others
  /// are not cut: the leader finishes an attempt only after all its daemons staged.
  void Finish(AttemptId attempt);
  /// A snapshot by value; waits for the mover at most a second.
  std::vector<LaneCounters> Counters() const;

 private:
  Mover() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
