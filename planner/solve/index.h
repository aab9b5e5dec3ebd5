#pragma once

#include <cstdint>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/refusal.h"
#include "planner/solve/layout_classes.h"
#include "planner/solve/owners.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/source_sets.h"
#include "planner/solve/ties.h"

namespace wb {

/// More slices than this, of workers that are not alike, or more bytes are refused (kind "limit").
inline constexpr std::size_t kMaxSlices = 16'777'216;
inline constexpr std::uint64_t kMaxPlanBytes = INT64_MAX;

/// What `worker` and those like it want: SliceIndex::slices[begin, end), disjoint boxes that cover
/// its pieces, ordered by (tensor, lo).
struct Wanted {
  WorkerIndex worker;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// All slices of a job and who could send them. The first of workers that are alike stands for all.
struct SliceIndex {
  SourceSets sets;
  std::vector<SourceBox> sources;  // ordered by (tensor, lo)
  std::vector<Slice> slices;
  std::vector<Wanted> wanted;  // ordered by worker
};

/// The index, or every reason why there is no plan: conflicting owners, elements that no trainer
/// holds, rollout workers for which nothing is planned. `job` has its tables in order.
struct IndexResult {
  SliceIndex index;
  Refusals refusals;
};
[[nodiscard]] IndexResult BuildIndex(const Job& job,
                                     const LayoutClasses& classes,
                                     const PieceTable& pieces,
                                     const TieTable& ties);

/// Tensors that a trainer holds and no rollout wants, under this name or one tied to it; ordered.
[[nodiscard]] std::vector<TensorId> UnusedTensors(const Job& job,
                                                  const PieceTable& pieces,
                                                  const TieTable& ties);

}  // namespace wb
