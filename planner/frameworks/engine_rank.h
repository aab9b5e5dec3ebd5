#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/frameworks/model_tensors.h"
#include "planner/frameworks/pipeline_stages.h"
#include "planner/frameworks/size_checks.h"
#include "planner/model/layout.h"

namespace wb {

/// Part `index` of `parts` equal ones; 0 of 1 is the whole.
struct Share {
  std::int64_t parts = 1;
  std::int64_t index = 0;
};

/// What a rank of an inference engine holds. SGLang and vLLM fuse the same params in the same order
/// (q, k, v; gate, up; w13 of all experts); what differs is which ranks share what.
struct EngineRank {
  LayerRange layers;
  bool embedding = true;  // the first stage
  bool head = true;       // the last stage, with the final norm
  Share attention;
  Share embedding_rows;
  Share head_rows;
  Share dense;
  Share shared_experts;
  Share expert_rows;
  /// The experts of a layer in the rank's slots, in order. Called for sparse layers.
  std::function<std::vector<std::int64_t>(std::int64_t layer)> experts;
  std::string fused_qkv_a;  // the param of q_a and kv_a
};

/// The layout of such a rank; its sizes fit, see CheckEngine. Attributes that an engine derives
/// from its params after loading (w_kc, w_vc, W_UV, W_UK_T) are not params: it derives them anew.
[[nodiscard]] Layout LayOutEngineRank(const ModelTensors& model, const EngineRank& rank);

/// In how many parts each kind of param is cut, and the key that says so.
struct EngineParts {
  struct Of {
    std::string key;
    std::int64_t parts = 1;
  };
  Of attention;
  Of embedding;
  Of head;
  Of dense;
  Of shared_experts;
  Of expert_rows;
};

/// Refuses parts that do not fit the model: heads in pieces, rows that do not divide.
void CheckEngine(const HfConfig& config, const EngineParts& parts, SizeChecks& checks);

}  // namespace wb
