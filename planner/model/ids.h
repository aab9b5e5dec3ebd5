#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "planner/base/strong_id.h"

namespace wb {

/// A version of the weights. Versions of a job only grow; 0 means "none yet".
using Version = StrongId<struct VersionTag>;
/// Index into Job::tensors().
using TensorId = StrongId<struct TensorTag, std::uint32_t>;
/// Index into Job::layouts().
using WorkerIndex = StrongId<struct WorkerIndexTag, std::uint32_t>;
/// Random number of a process start: a restarted process is never mistaken for the old one.
using Incarnation = StrongId<struct IncarnationTag>;
/// New and larger at each start of a leader.
using Term = StrongId<struct TermTag>;
/// hash(term, version, group, fingerprint of its plan, worker epochs): one try of one delivery.
using AttemptId = StrongId<struct AttemptTag>;
/// XXH3 of the canonical form of a plan, or of its part for one rollout group.
using Fingerprint = StrongId<struct FingerprintTag>;
/// Generation of a worker's registration of its memory.
using Epoch = StrongId<struct EpochTag>;

enum class Role : std::uint8_t { kTrainer, kRollout };

/// A worker's name within its job, printed "group/rank".
struct WorkerName {
  std::string group;
  std::int32_t rank = 0;
  friend auto operator<=>(const WorkerName&, const WorkerName&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const WorkerName& name) {
    return H::combine(std::move(h), name.group, name.rank);
  }
  std::string ToString() const { return group + "/" + std::to_string(rank); }
};

}  // namespace wb
