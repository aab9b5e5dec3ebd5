#pragma once

#include <cstdint>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/refusal.h"
#include "planner/solve/owners.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/source_sets.h"
#include "planner/solve/ties.h"

namespace wb {

/// More slices than this, or more bytes, are refused (kind "limit").
inline constexpr std::size_t kMaxSlices = 16'777'216;
inline constexpr std::uint64_t kMaxPlanBytes = INT64_MAX;

/// Elements that one rollout worker wants and that lie in one source box. `landing` numbers the
/// destination box: slices of one landing lie inside the same pieces of `dst`.
struct Slice {
  TensorId tensor;
  WorkerIndex dst;
  std::uint32_t source = 0;   // index into SliceIndex::sources
  std::uint32_t landing = 0;  // unique within (tensor, dst)
  Box box;
  std::uint64_t bytes = 0;
};

/// All slices of a job and who could send them. Slices are ordered by tensor; those of one rollout
/// worker are disjoint and cover its pieces.
struct SliceIndex {
  SourceSets sets;
  std::vector<SourceBox> sources;  // ordered by (tensor, lo)
  std::vector<Slice> slices;
  std::uint64_t bytes = 0;  // of all slices
};

/// The index, or every reason why there is no plan: conflicting owners, elements that no trainer
/// holds, rollout workers for which nothing is planned. `job` has its tables in order.
struct IndexResult {
  SliceIndex index;
  Refusals refusals;
};
[[nodiscard]] IndexResult BuildIndex(const Job& job,
                                     const PieceTable& pieces,
                                     const TieTable& ties);

/// Tensors that a trainer holds and no rollout wants, under this name or one tied to it; ordered.
[[nodiscard]] std::vector<TensorId> UnusedTensors(const Job& job,
                                                  const PieceTable& pieces,
                                                  const TieTable& ties);

}  // namespace wb
