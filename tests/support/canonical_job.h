#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/model/layout.h"

namespace wb::test {

/// What of a model decides how its weights are cut; figures as in its config.json.
struct ModelShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // 0: multi-head latent attention
  std::int64_t q_lora = 0;    // with MLA; 0: q_proj is whole
  std::int64_t experts = 0;
  std::int64_t expert_rows = 0;
  std::int64_t shared_rows = 0;  // of the shared expert; 0: none
  std::int64_t dense_layers = 0;
  std::int64_t dense_rows = 0;
  std::int64_t vocab = 0;
};

/// Megatron trainers to SGLang engines, 8 workers a node.
struct DeploymentShape {
  ModelShape model;
  std::int64_t trainers = 0;
  std::int64_t tp = 0;
  std::int64_t pp = 0;
  std::int64_t ep = 0;
  std::int64_t last_stage_layers = 0;  // 0: as the others
  std::int64_t engines = 0;
  std::int64_t ranks = 0;         // of an engine, = its expert parallelism
  std::int64_t attention_tp = 0;  // ranks over which an engine cuts attention and the vocabulary
  bool whole_dense_mlp = false;   // an engine's dense layers are replicated
};

[[nodiscard]] DeploymentShape Moonlight();
[[nodiscard]] DeploymentShape Qwen3_30B();
[[nodiscard]] DeploymentShape Qwen3_235B();
[[nodiscard]] DeploymentShape KimiK2();

/// The job of a deployment with a param for each piece: boxes as frameworks cut them, whole shapes.
/// Engines are called "engine000" and so on.
[[nodiscard]] Job CanonicalJob(const DeploymentShape& shape);

}  // namespace wb::test
