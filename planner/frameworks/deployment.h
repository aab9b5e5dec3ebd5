#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/frameworks/fsdp_layout.h"
#include "planner/frameworks/hf_config.h"
#include "planner/frameworks/megatron_layout.h"
#include "planner/frameworks/sglang_layout.h"
#include "planner/frameworks/vllm_layout.h"
#include "planner/model/dtype.h"
#include "planner/model/layout.h"
#include "planner/model/refusal.h"

namespace wb {

/// The machines of a deployment: one worker of a group on each GPU, one rail for each GPU.
struct Cluster {
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;
  /// Engines begin on the trainer's first node, and share its GPUs; else on the node after its
  /// last.
  bool colocated = false;
  // Rates of a GPU in one direction; GB = 1e9 bytes.
  double rail_gb_per_s = 0;
  double nvlink_gb_per_s = 0;
  double pcie_gb_per_s = 0;
};

/// Rollout engines that are cut alike.
struct EngineSet {
  std::int64_t engines = 1;
  std::variant<SglangLayout, VllmLayout> layout;
};

/// What a deployment file says: a model, how a trainer and rollout engines cut it, and where they
/// run. Plain value, made by ParseDeployment.
struct Deployment {
  std::string job;
  std::string config;  // path of the model's config.json, relative to the file
  Dtype dtype = Dtype::kBf16;
  std::variant<MegatronLayout, FsdpLayout> trainer;
  bool says_etp = true;  // false: a Megatron trainer without etp, which has to say it with experts
  std::vector<EngineSet> rollouts;
  Cluster cluster;
};

/// The deployment in `yaml` (deploy/examples/kimi-k2.yaml explains every key), or every reason why
/// it is refused (kind "deployment"), each with `file`, the line and the key's path.
[[nodiscard]] std::variant<Deployment, Refusals> ParseDeployment(std::string_view yaml,
                                                                 const std::string& file);

/// The deployment's job over the first `layers` layers of the model, or every reason why there is
/// none: sizes that the model does not allow (kind "size"), too few nodes, too many workers.
///
/// The trainer is group "policy" and the engines are "engine0", "engine1", ..., in the order of the
/// file; nodes are "node0", "node1", ... Ranks fill GPUs in order. Workers that hold the same share
/// their tables, the ranks of alike engines as well as data-parallel ones.
[[nodiscard]] std::variant<Job, Refusals> LayOut(const Deployment& deployment,
                                                 const HfConfig& config,
                                                 std::int64_t layers);

}  // namespace wb
