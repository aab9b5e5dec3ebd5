#pragma once

#include <cstdint>
#include <variant>

#include "planner/frameworks/layout_draft.h"
#include "planner/frameworks/model_tensors.h"
#include "planner/frameworks/pipeline_stages.h"
#include "planner/model/refusal.h"

namespace wb {

/// How Megatron keeps the experts of a rank.
enum class MegatronExperts : std::uint8_t {
  kGrouped,        // TEGroupedMLP: experts.linear_fc{1,2}.weight{j}
  kSequential,     // SequentialMLP: experts.local_experts.{j}.linear_fc{1,2}.weight
  kLegacyGrouped,  // GroupedMLP: experts.weight{1,2}, stacked and transposed
};

/// How Megatron-LM (megatron.core, Transformer Engine names) cuts a model over the ranks of a
/// trainer. Rank order is tp-cp-ep-dp-pp, its default. Every size is from 1 to
/// kMaxWorkers.
struct MegatronLayout {
  std::int64_t ranks = 1;
  std::int64_t tp = 1;   // tensor parallel, of all but experts
  std::int64_t cp = 1;   // context parallel: replicas, as data parallel
  std::int64_t ep = 1;   // expert parallel
  std::int64_t etp = 1;  // tensor parallel of experts
  PipelineSplit pipeline;
  std::int64_t vocab_divisor = 128;  // --make-vocab-size-divisible-by
  MegatronExperts experts = MegatronExperts::kGrouped;
};

/// How many ranks there are; sizes that are refused can be as many as 2^48.
[[nodiscard]] std::int64_t RanksOf(const MegatronLayout& megatron);

/// Every reason why the model cannot be cut so, without cutting it.
[[nodiscard]] Refusals CheckSizes(const HfConfig& config, const MegatronLayout& megatron);

/// What each rank holds, or every reason why the model cannot be cut so.
///
/// With several virtual stages the params of chunk v are "model{v}.…", as in Megatron's
/// checkpoints. Layers that `model` leaves out are on no rank, and the others where the whole model
/// has them.
[[nodiscard]] std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model,
                                                         const MegatronLayout& megatron);

}  // namespace wb
