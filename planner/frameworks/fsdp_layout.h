#pragma once

#include <cstdint>
#include <variant>

#include "planner/frameworks/layout_draft.h"
#include "planner/frameworks/model_tensors.h"
#include "planner/model/refusal.h"

namespace wb {

/// How FSDP2 (fully_shard) and HSDP cut a model over the ranks of a trainer: `replicate` times
/// `shard` ranks, each tensor by itself along dimension 0 in chunks as torch.chunk makes them: the
/// last may be shorter, and chunks after it are empty. Every size is from 1 to kMaxWorkers.
struct FsdpLayout {
  std::int64_t shard = 1;
  std::int64_t replicate = 1;
  /// Ranks of `shard` over which experts are spread first, next to each other. Above 1 the experts
  /// of a layer are stacked (experts.w1, w3, w2), and what is left of `shard` cuts the stack along
  /// dimension 0 or, where there are not enough experts, the rows of each along dimension 1.
  std::int64_t ep = 1;
};

/// How many ranks there are; sizes that are refused can be as many as 2^48.
[[nodiscard]] std::int64_t RanksOf(const FsdpLayout& fsdp);

/// Every reason why the model cannot be cut so, without cutting it.
[[nodiscard]] Refusals CheckSizes(const HfConfig& config, const FsdpLayout& fsdp);

/// What each rank holds, or every reason why the model cannot be cut so. Params have the names of
/// the checkpoint.
[[nodiscard]] std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model,
                                                         const FsdpLayout& fsdp);

}  // namespace wb
