#pragma once

#include <cstdint>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Bytes that a plan makes one worker send and receive: through its NIC, and inside its node.
struct NicLoad {
  std::uint64_t out = 0;
  std::uint64_t in = 0;
  std::uint64_t local_out = 0;
  std::uint64_t local_in = 0;
  friend bool operator==(const NicLoad&, const NicLoad&) = default;
};

/// The way of a NIC's bytes. A NIC carries both at its full rate at once.
enum class Direction : std::uint8_t { kOut, kIn };

[[nodiscard]] inline std::uint64_t BytesOf(const NicLoad& load, Direction direction) {
  return direction == Direction::kOut ? load.out : load.in;
}

/// One of the two ways of a worker's NIC.
struct NicWay {
  WorkerIndex worker;
  Direction direction = Direction::kOut;
  friend auto operator<=>(const NicWay&, const NicWay&) = default;
};

/// Per worker, a number that those of one node have in common.
[[nodiscard]] std::vector<std::uint32_t> NodeNumbers(const Job& job);

/// Per worker of the job.
[[nodiscard]] std::vector<NicLoad> NicLoads(const Job& job, const Plan& plan);

}  // namespace wb
