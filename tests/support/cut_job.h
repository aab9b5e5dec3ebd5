#pragma once

#include <cstdint>

#include "planner/model/layout.h"

namespace wb::test {

enum class RankCut : std::uint8_t { kRows, kColumns, kReplicated };

/// A regular job of many equal tensors, for figures: every trainer and every rollout holds its part
/// of every tensor, each side cut in one way.
struct CutJobOptions {
  std::int64_t tensors = 1;
  std::int64_t trainers = 8;
  std::int64_t rollouts = 8;
  RankCut trainer_cut = RankCut::kRows;
  RankCut rollout_cut = RankCut::kRows;
  std::int64_t rows = 1024;
  std::int64_t columns = 1024;
};
[[nodiscard]] Job CutJob(const CutJobOptions& options);

}  // namespace wb::test
