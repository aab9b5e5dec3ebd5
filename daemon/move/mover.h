#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/attempt_work.h"
#include "transport/memory/region.h"

namespace wb {

struct MoverOptions {
  std::string node;                         // this daemon's name in the cluster
  Incarnation incarnation;                  // of this daemon, as the leader tells it to peers
  std::string interface;                    // network device the fabric binds to
  std::string transports = "tcp";           // "tcp" ("shm" and "auto" come later)
  std::uint64_t arena_bytes = 64ULL << 20;  // slots for packed chunks
  std::uint64_t chunk_bytes = kDefaultChunkBytes;
  int chunks_in_flight = 4;  // per lane
  int copy_threads = 1;
  bool verify = true;  // integrity: wire
};

/// What went to and came from one peer daemon since the mover started.
struct LaneCounters {
  std::string peer_node;
  std::string fabric;
  std::uint64_t sent_bytes = 0;      // left our buffers; no promise of delivery
  std::uint64_t received_bytes = 0;  // landed and checked
};

struct MoverCounters {
  std::vector<LaneCounters> lanes;   // by peer node, in order of their names
  std::uint64_t refused_chunks = 0;  // malformed, or not of the attempt they name
  std::uint64_t late_chunks = 0;     // of no attempt that we know (any more)
};

/// The thread that owns the fabric and executes attempts. All methods are thread-safe: they post
/// to its loop, and what one thread posts is done in its order. Chunks that belong to no prepared
/// attempt are refused and counted.
///
/// An attempt goes Prepare -> OnPrepared -> Go -> OnStaged -> Finish -> OnEnded. OnFailed may come
/// instead of OnPrepared or OnStaged, or after OnStaged while chunks still go out to others. Abort
/// is legal at any time and always answered by OnEnded, once.
class Mover {
 public:
  /// `events` must outlive the mover.
  static absl::StatusOr<std::unique_ptr<Mover>> Start(const MoverOptions& options,
                                                      MoverEvents& events);
  /// Aborts what is left; nothing touches a region after it.
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  /// How peers reach the fabric.
  const std::string& address() const;
  const std::string& fabric() const;
  void AddRegion(RegionId id, Region region);
  /// Unmaps once no attempt uses it; then calls `removed` on the mover's thread. Attempts prepared
  /// from now on cannot use it.
  void RemoveRegion(RegionId id, std::function<void()> removed);
  /// Preparing an attempt again that is known already changes nothing and repeats OnPrepared.
  void Prepare(AttemptWork work);
  void Go(AttemptId attempt);
  /// Stops posting, force-closes the endpoints in use, waits for every operation: then OnEnded.
  void Abort(AttemptId attempt);
  /// The delivery is decided; its state is dropped: then OnEnded. Chunks still going out to others
  /// are not cut: the leader finishes an attempt only after all its daemons staged.
  void Finish(AttemptId attempt);
  /// A snapshot by value; waits for the mover at most a second (then UNAVAILABLE).
  absl::StatusOr<MoverCounters> Counters() const;

 private:
  Mover() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
