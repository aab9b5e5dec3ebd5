#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "daemon/move/attempt_work.h"
#include "daemon/move/execute/attempt.h"
#include "daemon/move/execute/copiers.h"
#include "transport/memory/region.h"

namespace wb {

/// What an attempt's chunks have to fit.
struct AttemptLimits {
  std::string node;                     // this daemon
  std::uint64_t slot_bytes = 0;         // of the arena, for packed chunks
  std::uint64_t max_message_bytes = 0;  // of the fabric
};

/// Checks all of `work` against the regions and the copiers for their memory, and makes its
/// attempt, with everything allocated that moving needs. The lanes have no connection yet, and no
/// region is counted. The status names what does not fit.
///
/// Lanes are in the order of the peers' names, from a place on that depends on this node's name,
/// and so are the streams of a lane: senders that start together begin at different receivers.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Attempt>> MakeAttempt(AttemptWork work,
                                                                   const RegionTable& regions,
                                                                   const Copiers& copiers,
                                                                   const AttemptLimits& limits);

}  // namespace wb
