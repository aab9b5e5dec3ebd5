#pragma once

#include <cstddef>
#include <cstdint>

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Bytes of moves by how they lie in a worker's memory. One run is sent from where it is, or lands
/// where it stays; anything else (`strided`) is packed or scattered by a copy.
struct RunShare {
  std::uint64_t contiguous_bytes = 0;  // moves that are one run, in one place
  std::uint64_t strided_bytes = 0;     // moves of several runs, or to several places
  friend bool operator==(const RunShare&, const RunShare&) = default;
};

/// A plan's moves in all.
struct MoveSurvey {
  std::size_t moves = 0;
  RunShare source;
  RunShare destination;
  friend bool operator==(const MoveSurvey&, const MoveSurvey&) = default;
};

/// Looks at each move of the plan once.
[[nodiscard]] MoveSurvey SurveyMoves(const Job& job, const Plan& plan);

}  // namespace wb
