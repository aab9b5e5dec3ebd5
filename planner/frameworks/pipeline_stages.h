#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "planner/model/refusal.h"

namespace wb {

/// Layers that follow each other: [first, first + count).
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

/// What each pipeline stage holds of a model's layers, one range for each of its virtual stages
/// (model chunks): [stage][chunk]. The embedding is in the first chunk of the first stage, the head
/// in the last of the last.
///
/// Invariant: all stages have the same number of chunks; the ranges, chunk by chunk and in each
/// stage by stage, follow each other from layer 0 and cover all. A range may be empty.
using PipelineStages = std::vector<std::vector<LayerRange>>;

/// How Megatron-LM splits layers over its pipeline.
struct PipelineSplit {
  std::int64_t pp = 1;
  std::int64_t virtual_stages = 1;      // chunks of each stage
  std::int64_t first_stage_layers = 0;  // 0: not given, as the next
  std::int64_t last_stage_layers = 0;
  /// --pipeline-model-parallel-layout, as "Et*3|(tt|)*28t|tL"; instead of the three above.
  std::string layout;
};

/// The stages, or every reason why there are none (kind "size"): layers that do not divide over
/// stages and chunks, a layout that is not one or is of other layers.
[[nodiscard]] std::variant<PipelineStages, Refusals> SplitLayers(const PipelineSplit& split,
                                                                 std::int64_t layers);

/// Stages of one chunk with so many layers each.
[[nodiscard]] PipelineStages StagesOf(const std::vector<std::int64_t>& counts);

}  // namespace wb
