#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/refusal.h"
#include "planner/solve/piece_table.h"

namespace wb {

/// A box that a rollout worker wants once: it lies in the same pieces of `dst`, one or several
/// (tied params), and landings of one worker and tensor are disjoint.
struct Landing {
  Box box;
  WorkerIndex dst;
  std::uint32_t number = 0;  // unique within (tensor, dst)
};

/// What the rollout workers want of a tensor, under its name and its aliases', ordered by
/// (box, dst); or the reason why there is no telling.
struct TensorLandings {
  std::vector<Landing> landings;
  Refusals refusals;
};
[[nodiscard]] TensorLandings FindLandings(const Job& job,
                                          const PieceTable& pieces,
                                          TensorId tensor,
                                          std::span<const TensorId> aliases);

}  // namespace wb
