#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "planner/frameworks/layout_draft.h"
#include "planner/frameworks/model_tensors.h"
#include "planner/frameworks/pipeline_stages.h"
#include "planner/model/refusal.h"

namespace wb {

/// How vLLM cuts a model over the ranks of an engine: dp replicas of all but experts, each of pp
/// stages of tp ranks, in this order. Every size is from 1 to kMaxWorkers.
struct VllmLayout {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  bool ep = false;                      // --enable-expert-parallel, over dp x tp
  std::vector<std::int64_t> pp_layers;  // VLLM_PP_LAYER_PARTITION; empty: vLLM's own
};

/// How many ranks there are; sizes that are refused can be as many as 2^48.
[[nodiscard]] std::int64_t RanksOf(const VllmLayout& vllm);

/// Every reason why the model cannot be cut so, without cutting it.
[[nodiscard]] Refusals CheckSizes(const HfConfig& config, const VllmLayout& vllm);

/// What each rank holds, or every reason why the model cannot be cut so.
[[nodiscard]] std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model,
                                                         const VllmLayout& vllm);

/// vLLM's own split of layers over pp stages: those left over go to the stages before the last, one
/// each.
[[nodiscard]] PipelineStages VllmStages(std::int64_t layers, std::int64_t pp);

}  // namespace wb
