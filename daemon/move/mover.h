#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/attempt_runner.h"
#include "daemon/move/mover_counters.h"
#include "transport/fabric.h"
#include "transport/memory/region.h"

namespace wb {

struct MoverOptions {
  std::string node;                         // this daemon's name in the cluster
  Incarnation incarnation;                  // of this daemon, as the leader tells it to peers
  std::string interface;                    // network device the fabric binds to
  std::string transports = "tcp";           // "tcp", "shm" or "auto" (ucx_fabric.h)
  std::uint64_t arena_bytes = 64ULL << 20;  // slots for packed chunks
  std::uint64_t chunk_bytes = kDefaultChunkBytes;
  int chunks_in_flight = 4;  // per lane
  int copy_threads = 1;
  bool verify = true;  // integrity: wire
  /// A test's: is given the fabric, on the mover's thread, and returns what is used in its place.
  std::function<std::unique_ptr<Fabric>(std::unique_ptr<Fabric>, const RegionTable&)> between = {};
};

/// The thread that owns the fabric and executes attempts. All methods are thread-safe: they post
/// to its loop, and what one thread posts is done in its order. Chunks that belong to no prepared
/// attempt are refused and counted.
class Mover final : public AttemptRunner {
 public:
  /// `events` must outlive the mover.
  static absl::StatusOr<std::unique_ptr<Mover>> Start(const MoverOptions& options,
                                                      MoverEvents& events);
  /// Aborts what is left; nothing touches a region after it.
  ~Mover() override;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  /// Runs `task` on the mover's thread.
  void Post(std::function<void()> task) const;
  /// How peers reach the fabric.
  const std::string& address() const;
  const std::string& fabric() const;
  void AddRegion(RegionId id, Region region) override;
  /// `removed` is called on the mover's thread.
  void RemoveRegion(RegionId id, std::function<void()> removed) override;
  void Prepare(AttemptWork work) override;
  void Go(AttemptId attempt) override;
  void Abort(AttemptId attempt) override;
  void Finish(AttemptId attempt) override;
  void TakeSnapshot(SnapshotWork work) override;
  void DropSnapshot(SnapshotId snapshot) override;
  /// A snapshot by value; waits for the mover at most a second (then UNAVAILABLE).
  absl::StatusOr<MoverCounters> Counters() const;

 private:
  Mover() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
