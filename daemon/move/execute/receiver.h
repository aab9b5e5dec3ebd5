#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/chunk_header.h"
#include "daemon/move/execute/attempt.h"
#include "daemon/move/execute/fifo.h"
#include "daemon/move/execute/operation.h"
#include "daemon/move/execute/slot_pool.h"
#include "transport/fabric.h"

namespace wb {

using AttemptMap = absl::flat_hash_map<AttemptId, std::unique_ptr<Attempt>>;

/// Decides where announced chunks land, and refuses those that no attempt expects exactly so.
/// Direct chunks land in their region, others in a slot, from where they are scattered; either
/// counts as landed only once it fits its checksum.
///
/// A chunk that comes before our own Go, or finds no free slot, is held: how many can be held is
/// bounded by the senders' windows. What goes wrong is noted in the attempt. Loop-confined.
class Receiver {
 public:
  struct Refusals {
    std::uint64_t refused = 0;  // malformed, or not of the attempt they name
    std::uint64_t late = 0;     // of no attempt that we know (any more)
  };

  Receiver(Fabric& fabric, OperationTable& operations, SlotPool& slots, bool verify)
      : fabric_(fabric), operations_(operations), slots_(slots), verify_(verify) {}

  /// The fabric's question. Changes the attempt it is for, nothing else.
  absl::StatusOr<std::optional<Landing>> OnAnnouncement(const AttemptMap& attempts,
                                                        const Announcement& announcement);
  /// The attempt has started to move: what was held for it may land.
  void Start(const Attempt& attempt);
  void OnReceived(Operation& operation, const absl::Status& status);
  void OnUnpacked(Operation& operation, std::uint64_t checksum);
  /// Lands what waits for a slot while there are free ones.
  void Pump();
  /// Refuses all that is held for the attempt; what is landing ends by OnReceived and OnUnpacked.
  void Stop(const Attempt& attempt, const absl::Status& reason);
  /// What is held of a connection that ended is gone.
  void Forget(EndpointId endpoint);

  const Refusals& refusals() const { return refusals_; }

 private:
  /// An announced chunk, checked.
  struct Chunk {
    Attempt* attempt = nullptr;
    std::uint32_t stream = 0;  // index into Attempt::in
    std::uint32_t chunk = 0;
    std::uint64_t checksum = 0;
    AnnouncementId id;
    EndpointId from;
  };

  absl::StatusOr<std::optional<Landing>> Greet(const Announcement& announcement);
  absl::StatusOr<Chunk> Check(const AttemptMap& attempts,
                              const ChunkHeader& header,
                              const Announcement& announcement);
  absl::Status CheckExpected(const Incoming& in,
                             const ChunkHeader& header,
                             std::uint64_t bytes) const;
  absl::Status Refuse(absl::Status reason);
  bool NeedsSlot(const Chunk& chunk) const;
  void NoteEndpoint(InPeer& peer, EndpointId endpoint) const;
  bool OverShm(EndpointId endpoint) const;
  Landing Begin(const Chunk& chunk);
  void Accept(const Chunk& chunk);
  void Landed(Operation& operation);
  void End(Operation& operation);

  Fabric& fabric_;
  OperationTable& operations_;
  SlotPool& slots_;
  bool verify_;
  Refusals refusals_;
  Fifo<Chunk> early_;    // of attempts that do not move yet
  Fifo<Chunk> starved_;  // want a slot
};

}  // namespace wb
