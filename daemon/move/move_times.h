#pragma once

#include <cstdint>
#include <map>

namespace wb {

/// Where a worker's part of one delivery spent its time at this daemon: for each phase the seconds
/// in which at least one of the worker's chunks was in it. Phases overlap, so they add up to more
/// than the time that passed.
struct MoveTimes {
  double pack_seconds = 0;     // gathered from strided memory, or summed for their checksum
  double wire_seconds = 0;     // on their way between two daemons
  double scatter_seconds = 0;  // checked, and put into strided memory
  double copy_seconds = 0;     // copied region to region: both ends are here
};

/// Of an attempt, by rank: of the trainer group, and of the rollout group.
struct AttemptTimes {
  std::map<std::int32_t, MoveTimes> sources;
  std::map<std::int32_t, MoveTimes> destinations;
};

}  // namespace wb
