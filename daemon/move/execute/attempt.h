#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "daemon/move/checked_stream.h"
#include "daemon/move/execute/lane_table.h"
#include "daemon/move/execute/worker_times.h"
#include "planner/model/ids.h"
#include "transport/copy/copier.h"
#include "transport/fabric.h"

namespace wb {

/// The life of an attempt at one daemon.
enum class AttemptState : std::uint8_t {
  kPreparing,  // lanes are being opened
  kPrepared,   // Go may come; chunks that come before it are held
  kMoving,
  kStaged,     // all that lands here has; chunks may still go out
  kFailed,     // moves nothing more, waits for Abort
  kFinishing,  // decided: waits for its last operations
  kAborting,   // cut: waits for its last operations
};

const char* ToString(AttemptState state);

/// The status with "what: " in front of its text.
absl::Status Prefixed(const absl::Status& status, const std::string& what);
/// Likewise, of something between us and the daemon of `node`: UNAVAILABLE names that as gone.
absl::Status PrefixedWithPeer(const absl::Status& status,
                              const std::string& node,
                              const std::string& what);

constexpr bool CanStep(AttemptState from, AttemptState to) {
  using enum AttemptState;
  if (to == kAborting) return true;
  switch (from) {
    case kPreparing:
      return to == kPrepared || to == kFailed;
    case kPrepared:
      return to == kMoving || to == kFailed;
    case kMoving:
      return to == kStaged || to == kFailed;
    case kStaged:
      return to == kFinishing || to == kFailed;
    case kFailed:
    case kFinishing:
    case kAborting:
      return false;
  }
  return false;
}

/// A stream to a peer.
struct Outgoing {
  std::uint32_t number = 0;
  CheckedStream stream;
  Copier* copier = nullptr;      // reaches its memory
  WorkerTimes* times = nullptr;  // of its source
  std::uint32_t next = 0;        // chunk
};

struct Attempt;

/// What an attempt sends over one lane: its streams take turns, chunk by chunk.
struct OutLane {
  PeerAddress peer;
  Attempt* attempt = nullptr;
  Lane* lane = nullptr;                // once the attempt has acquired it
  std::vector<std::uint32_t> streams;  // indices into Attempt::out that have chunks left
  std::size_t turn = 0;                // index into `streams`
  int in_flight = 0;                   // chunks being packed or sent
  bool queued = false;                 // waits in one of the sender's queues
};

/// A peer that sends to us, and the connections its chunks came in on.
struct InPeer {
  std::string node;
  Incarnation incarnation;
  std::uint64_t awaited_bytes = 0;  // not landed yet
  LaneCounters* counters = nullptr;
  absl::InlinedVector<EndpointId, 2> endpoints;
};

enum class ChunkState : std::uint8_t { kAwaited, kHeld, kLanding, kLanded };

/// A stream from a peer.
struct Incoming {
  std::uint32_t number = 0;
  CheckedStream stream;
  std::uint32_t peer = 0;  // index into Attempt::in_peers
  std::vector<ChunkState> chunks;
  Copier* copier = nullptr;      // reaches its memory
  WorkerTimes* times = nullptr;  // of its destination
};

/// A stream whose both ends are here.
struct LocalMove {
  CheckedStream source;
  CheckedStream destination;
  Copier* copier = nullptr;  // reaches the memory of both
  WorkerTimes* source_times = nullptr;
  WorkerTimes* destination_times = nullptr;
  std::uint32_t next = 0;  // chunk
};

/// One attempt as the executor keeps it. Loop-confined; its address is stable, and its streams and
/// lanes do not move once it is made: operations point to them.
/// Invariant: while `operations` is above zero, someone may read or write memory of its regions.
struct Attempt {
  AttemptId id;
  Version version;
  std::string job;
  std::string group;
  AttemptState state = AttemptState::kPreparing;
  /// The first thing that went wrong; the executor acts on it once it has the turn.
  absl::Status failure;

  std::vector<RegionId> regions;  // counted in RegionUses
  std::vector<Outgoing> out;
  std::vector<OutLane> lanes;
  std::vector<InPeer> in_peers;
  std::vector<Incoming> in;
  absl::flat_hash_map<std::uint32_t, std::uint32_t> in_by_number;  // to index of `in`
  std::vector<LocalMove> local;
  std::uint32_t local_turn = 0;  // index into `local`

  std::uint64_t operations = 0;        // sends, receives and copies that have not ended
  std::uint32_t hellos = 0;            // lanes that are not open yet
  std::uint64_t unsent_chunks = 0;     // not posted yet
  std::uint64_t awaited_bytes = 0;     // of peers, not landed yet
  std::uint64_t uncopied_bytes = 0;    // of local moves
  std::uint64_t landed_bytes = 0;      // of peers
  std::uint64_t landed_shm_bytes = 0;  // those of them that came over shared memory
  std::uint64_t copied_bytes = 0;
  std::map<std::int32_t, WorkerTimes> source_times;       // by rank; addresses are stable
  std::map<std::int32_t, WorkerTimes> destination_times;  // likewise

  bool lands_nothing_more() const { return awaited_bytes == 0 && uncopied_bytes == 0; }
  /// Whether chunks of peers are still welcome.
  bool may_land() const {
    return failure.ok() && (state == AttemptState::kPreparing || state == AttemptState::kPrepared ||
                            state == AttemptState::kMoving);
  }
  /// Whether chunks go out: also after the decision, until the last one has.
  bool may_send() const {
    return failure.ok() && (state == AttemptState::kMoving || state == AttemptState::kStaged ||
                            state == AttemptState::kFinishing);
  }
  /// Decided or cut, and nothing of it is left.
  bool over() const {
    if (operations > 0) return false;
    if (state == AttemptState::kAborting) return true;
    return state == AttemptState::kFinishing && (unsent_chunks == 0 || !failure.ok());
  }
  void Fail(absl::Status status) {
    if (failure.ok()) failure = std::move(status);
  }
};

}  // namespace wb
