#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "daemon/move/attempt_work.h"
#include "daemon/move/execute/copiers.h"
#include "daemon/move/execute/region_uses.h"
#include "daemon/move/snapshot_work.h"
#include "planner/base/byte_block.h"
#include "transport/copy/copier.h"
#include "transport/memory/region.h"

namespace wb {

/// Takes snapshots: whole works one after the other, so that none writes after one that came later.
/// The copiers have only a few chunks of a work at once, so that deliveries are not kept waiting.
///
/// Invariant: a work's regions are counted as used from Take until its OnSnapshot. Loop-confined.
class SnapshotCopier {
 public:
  /// What it works with; all of it outlives the copier.
  struct Parts {
    const RegionTable& regions;
    RegionUses& uses;
    Copiers copiers;
    MoverEvents& events;
  };
  SnapshotCopier(Parts parts, std::uint64_t chunk_bytes, int at_once)
      : parts_(std::move(parts)), chunk_bytes_(chunk_bytes), at_once_(at_once) {}

  void Take(const SnapshotWork& work);
  void Drop(SnapshotId id);
  void DropAll();
  /// Whether a job that a copier has done is of a snapshot.
  static bool Owns(const CopyJob& job) { return job.token == kToken; }
  void OnCopied(CopyJob job);
  bool idle() const { return works_.empty(); }

 private:
  /// No operation has it: their tags count up from 0.
  static constexpr std::uint64_t kToken = ~std::uint64_t{0};

  struct Part {
    ByteBlock block;  // all of it: one run
    std::span<const std::byte> from;
    std::span<std::byte> to;
    Copier* copier = nullptr;  // reaches both
    std::uint64_t next = 0;    // byte
  };
  struct Work {
    SnapshotId id;
    absl::Status status;
    std::vector<RegionId> regions;  // counted in RegionUses
    std::vector<Part> parts;        // jobs point to their blocks
    bool begun = false;
    std::vector<Part>::iterator part{};  // that the next chunk is of
    int pending = 0;                     // jobs that a copier has
  };
  using Works = std::list<Work>;

  absl::Status Admit(const SnapshotWork& work, Work& admitted) const;
  absl::Status Add(const SnapshotPart& part, Part& added) const;
  void SubmitNext(Work& work, CopyJob job) const;
  void Drop(Works::iterator work);
  void RunFirst();
  void End(Works::iterator work);

  const Parts parts_;
  const std::uint64_t chunk_bytes_;
  const int at_once_;
  Works works_;  // the first is being copied
};

}  // namespace wb
