#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/frameworks/hf_config.h"
#include "planner/model/layout.h"
#include "planner/model/refusal.h"

namespace wb {

/// What a tensor is in its model. First those of the model, then those of a layer, at last those of
/// an expert of a layer.
enum class Weight : std::uint8_t {
  kEmbedding,
  kFinalNorm,
  kHead,

  kInputNorm,
  kPostNorm,
  kQ,
  kK,
  kV,
  kO,
  kQBias,
  kKBias,
  kVBias,
  kOBias,
  kQNorm,
  kKNorm,
  kQA,
  kQANorm,
  kQB,
  kKvA,
  kKvANorm,
  kKvB,
  kGate,
  kUp,
  kDown,
  kGateBias,
  kUpBias,
  kDownBias,
  kRouter,
  kRouterBias,
  kSharedGate,
  kSharedUp,
  kSharedDown,

  kExpertGate,
  kExpertUp,
  kExpertDown,
};

/// All tensors of a model's first layers, as its checkpoint names and shapes them: a job's table,
/// and where in it each weight is. Immutable.
///
/// Invariant: the table is ordered by name. A weight that the model lacks, or of a layer that is
/// left out, has no id.
class ModelTensors {
 public:
  /// Of the first `layers` layers of the model, what is outside layers, or the reason why there
  /// would be too many (kind "limit"). All are of `dtype` but routers' biases, which are FP32.
  static std::variant<ModelTensors, Refusals> Create(HfConfig config,
                                                     Dtype dtype,
                                                     std::int64_t layers);

  const HfConfig& config() const { return config_; }
  Dtype dtype() const { return dtype_; }
  /// Layers that have tensors here; of a pipeline cut by all of the model's.
  std::int64_t layers() const { return layers_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor& tensor(TensorId id) const { return tensors_[id.value()]; }

  /// Of a weight that is outside layers.
  std::optional<TensorId> Find(Weight weight) const;
  std::optional<TensorId> Find(Weight weight, std::int64_t layer) const;
  /// Of an expert of a sparse layer.
  TensorId Expert(Weight weight, std::int64_t layer, std::int64_t expert) const;

 private:
  ModelTensors(HfConfig config, Dtype dtype, std::int64_t layers);
  void Build();
  std::uint32_t Append(std::string name, Weight weight);

  HfConfig config_;
  Dtype dtype_ = Dtype::kBf16;
  std::int64_t layers_ = 0;
  std::vector<Tensor> tensors_;
  // Indices into tensors_, or kNone: outside layers by weight, then a block for each layer: by
  // weight, then three for each expert of it.
  std::vector<std::uint32_t> outside_;
  std::vector<std::vector<std::uint32_t>> in_layer_;
};

}  // namespace wb
