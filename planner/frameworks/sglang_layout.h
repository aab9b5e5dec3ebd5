#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "planner/frameworks/layout_draft.h"
#include "planner/frameworks/model_tensors.h"
#include "planner/model/refusal.h"

namespace wb {

/// How SGLang cuts a model over the ranks of an engine (one pipeline stage). Every size is from 1
/// to kMaxWorkers.
struct SglangLayout {
  std::int64_t tp = 1;        // --tp-size: the engine's ranks
  std::int64_t ep = 1;        // --ep-size; experts that are whole where it is tp
  std::int64_t dp = 1;        // --dp-size of data-parallel attention, inside tp; 1: none
  bool dp_lm_head = false;    // --enable-dp-lm-head; says nothing where dp is 1
  bool dense_tp_one = false;  // --moe-dense-tp-size 1: dense layers whole on every rank
  std::optional<bool> shared_experts_whole = {};  // as with DeepEP and the like; default: false
  std::int64_t redundant_experts = 0;             // --ep-num-redundant-experts
  /// The expert in each physical slot, of all layers if there is one list, else a list for each
  /// layer of the model. None: slot i has expert i mod their number, as SGLang starts.
  std::vector<std::vector<std::int64_t>> physical_to_logical;
};

/// How many ranks there are; sizes that are refused can be as many as 2^48.
[[nodiscard]] std::int64_t RanksOf(const SglangLayout& sglang);

/// Every reason why the model cannot be cut so, without cutting it.
[[nodiscard]] Refusals CheckSizes(const HfConfig& config, const SglangLayout& sglang);

/// What each rank holds, or every reason why the model cannot be cut so. Good for one map of
/// experts: rebalancing moves them in place.
[[nodiscard]] std::variant<RankLayouts, Refusals> LayOut(const ModelTensors& model,
                                                         const SglangLayout& sglang);

}  // namespace wb
