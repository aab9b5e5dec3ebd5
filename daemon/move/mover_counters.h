#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wb {

/// What went to and came from one peer daemon since the mover started.
struct LaneCounters {
  std::string peer_node;
  std::string fabric;                // what the newest lane runs on: "tcp", "shm"
  std::uint64_t sent_bytes = 0;      // left our buffers; no promise of delivery
  std::uint64_t received_bytes = 0;  // landed and checked
  std::uint64_t connects = 0;        // lanes made to it; a kept one is used again
};

struct MoverCounters {
  std::vector<LaneCounters> lanes;   // by peer node, in order of their names
  std::uint64_t refused_chunks = 0;  // malformed, or not of the attempt they name
  std::uint64_t late_chunks = 0;     // of no attempt that we know (any more)
  std::uint64_t regions = 0;         // of workers
};

}  // namespace wb
