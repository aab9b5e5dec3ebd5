#include "planner/frameworks/model_tensors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wb {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr auto kFirstOfLayer = static_cast<std::size_t>(Weight::kInputNorm);
constexpr auto kFirstOfExpert = static_cast<std::size_t>(Weight::kExpertGate);
constexpr std::size_t kOfLayer = kFirstOfExpert - kFirstOfLayer;
constexpr std::size_t kOfExpert = 3;

std::size_t Number(Weight weight) {
  return static_cast<std::size_t>(weight);
}

// After "model.layers.{l}.".
constexpr std::array<const char*, kOfLayer> kLayerNames{
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.q_proj.bias",
    "self_attn.k_proj.bias",
    "self_attn.v_proj.bias",
    "self_attn.o_proj.bias",
    "self_attn.q_norm.weight",
    "self_attn.k_norm.weight",
    "self_attn.q_a_proj.weight",
    "self_attn.q_a_layernorm.weight",
    "self_attn.q_b_proj.weight",
    "self_attn.kv_a_proj_with_mqa.weight",
    "self_attn.kv_a_layernorm.weight",
    "self_attn.kv_b_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
    "mlp.gate_proj.bias",
    "mlp.up_proj.bias",
    "mlp.down_proj.bias",
    "mlp.gate.weight",
    "mlp.gate.e_score_correction_bias",
    "mlp.shared_experts.gate_proj.weight",
    "mlp.shared_experts.up_proj.weight",
    "mlp.shared_experts.down_proj.weight",
};
constexpr std::array<const char*, kOfExpert> kExpertNames{"gate_proj", "up_proj", "down_proj"};
constexpr std::array<const char*, kOfExpert> kMixtralNames{"w1", "w3", "w2"};

// Gate and up of an MLP are [rows, hidden], down is [hidden, rows].
Index MlpShape(const HfConfig& config, Weight gate, Weight weight, std::int64_t rows) {
  const bool down = Number(weight) == Number(gate) + 2;
  return down ? Index{config.hidden, rows} : Index{rows, config.hidden};
}

Index LatentShape(const HfConfig& config, Weight weight) {
  const std::int64_t q_rows = config.heads * config.q_head_rows();
  if (weight == Weight::kQA) return {config.q_lora_rank, config.hidden};
  if (weight == Weight::kQANorm) return {config.q_lora_rank};
  if (weight == Weight::kQB) return {q_rows, config.q_lora_rank};
  if (weight == Weight::kKvA) return {config.kv_lora_rank + config.rope_dim, config.hidden};
  if (weight == Weight::kKvANorm) return {config.kv_lora_rank};
  return {config.heads * config.kv_b_head_rows(), config.kv_lora_rank};
}

Index AttentionShape(const HfConfig& config, Weight weight) {
  const std::int64_t q_rows = config.heads * config.q_head_rows();
  const std::int64_t kv_rows = config.kv_heads * config.head_dim;
  switch (weight) {
    case Weight::kQ:
      return {q_rows, config.hidden};
    case Weight::kK:
    case Weight::kV:
      return {kv_rows, config.hidden};
    case Weight::kO:
      return {config.hidden, config.heads * config.o_head_columns()};
    case Weight::kQBias:
      return {q_rows};
    case Weight::kKBias:
    case Weight::kVBias:
      return {kv_rows};
    case Weight::kOBias:
      return {config.hidden};
    case Weight::kQNorm:
    case Weight::kKNorm:
      return {config.head_dim};
    default:
      return LatentShape(config, weight);
  }
}

Index ShapeOf(const HfConfig& config, Weight weight) {
  switch (weight) {
    case Weight::kEmbedding:
    case Weight::kHead:
      return {config.vocab, config.hidden};
    case Weight::kFinalNorm:
    case Weight::kInputNorm:
    case Weight::kPostNorm:
    case Weight::kDownBias:
      return {config.hidden};
    case Weight::kGate:
    case Weight::kUp:
    case Weight::kDown:
      return MlpShape(config, Weight::kGate, weight, config.intermediate);
    case Weight::kGateBias:
    case Weight::kUpBias:
      return {config.intermediate};
    case Weight::kRouter:
      return {config.experts, config.hidden};
    case Weight::kRouterBias:
      return {config.experts};
    case Weight::kSharedGate:
    case Weight::kSharedUp:
    case Weight::kSharedDown:
      return MlpShape(config, Weight::kSharedGate, weight, config.shared_intermediate);
    case Weight::kExpertGate:
    case Weight::kExpertUp:
    case Weight::kExpertDown:
      return MlpShape(config, Weight::kExpertGate, weight, config.expert_intermediate);
    default:
      return AttentionShape(config, weight);
  }
}

bool HasAttention(const HfConfig& config, Weight weight) {
  const bool lora = config.latent && config.q_lora_rank > 0;
  switch (weight) {
    case Weight::kQ:
      return !lora;
    case Weight::kK:
    case Weight::kV:
      return !config.latent;
    case Weight::kQBias:
    case Weight::kKBias:
    case Weight::kVBias:
      return config.qkv_bias;
    case Weight::kOBias:
      return config.o_bias;
    case Weight::kQNorm:
    case Weight::kKNorm:
      return config.qk_norm;
    case Weight::kQA:
    case Weight::kQANorm:
    case Weight::kQB:
      return lora;
    case Weight::kKvA:
    case Weight::kKvANorm:
    case Weight::kKvB:
      return config.latent;
    default:
      return true;  // norms and o_proj
  }
}

// Whether a layer, sparse or dense, has the weight.
bool Has(const HfConfig& config, Weight weight, bool sparse) {
  switch (weight) {
    case Weight::kGate:
    case Weight::kUp:
    case Weight::kDown:
      return !sparse;
    case Weight::kGateBias:
    case Weight::kUpBias:
    case Weight::kDownBias:
      return !sparse && config.mlp_bias;
    case Weight::kRouter:
      return sparse;
    case Weight::kRouterBias:
      return sparse && config.router_bias;
    case Weight::kSharedGate:
    case Weight::kSharedUp:
    case Weight::kSharedDown:
      return sparse && config.shared_intermediate > 0;
    default:
      return HasAttention(config, weight);
  }
}

std::string LayerName(const HfConfig& config, std::size_t of_layer) {
  const std::string name = kLayerNames.at(of_layer);
  const bool renamed = config.mixtral_names && name.rfind("mlp.gate.", 0) == 0;
  return renamed ? absl::StrCat("block_sparse_moe.", name.substr(4)) : name;
}

std::string ExpertName(const HfConfig& config, std::int64_t expert, std::size_t of_expert) {
  return config.mixtral_names
             ? absl::StrCat("block_sparse_moe.experts.", expert, ".", kMixtralNames.at(of_expert),
                            ".weight")
             : absl::StrCat("mlp.experts.", expert, ".", kExpertNames.at(of_expert), ".weight");
}

// The names of a layer's tensors after its prefix, in order, each with its place in the layer's
// block.
using LayerNames = std::vector<std::pair<std::string, std::size_t>>;

LayerNames NamesOfLayer(const HfConfig& config, bool sparse) {
  LayerNames names;
  for (std::size_t i = 0; i < kOfLayer; ++i) {
    if (!Has(config, static_cast<Weight>(kFirstOfLayer + i), sparse)) continue;
    names.emplace_back(LayerName(config, i), i);
  }
  for (std::int64_t expert = 0; sparse && expert < config.experts; ++expert) {
    for (std::size_t i = 0; i < kOfExpert; ++i) {
      names.emplace_back(ExpertName(config, expert, i),
                         kOfLayer + static_cast<std::size_t>(expert) * kOfExpert + i);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::int64_t TensorsOf(const HfConfig& config, std::int64_t layers) {
  const auto sparse = std::count(config.sparse.begin(), config.sparse.begin() + layers, true);
  return layers * static_cast<std::int64_t>(kOfLayer) + sparse * config.experts * 3;
}

}  // namespace

ModelTensors::ModelTensors(HfConfig config, Dtype dtype, std::int64_t layers)
    : config_(std::move(config)), dtype_(dtype), layers_(layers) {}

std::variant<ModelTensors, Refusals> ModelTensors::Create(HfConfig config,
                                                          Dtype dtype,
                                                          std::int64_t layers) {
  layers = std::min(layers, config.layers);
  if (const std::int64_t most = TensorsOf(config, layers);
      most > static_cast<std::int64_t>(kMaxTensors)) {
    return Refusals{
        {"limit", "", "",
         absl::StrCat("model: ", layers, " layers with ", config.experts, " experts have up to ",
                      most, " tensors, want at most ", kMaxTensors)}};
  }
  ModelTensors model(std::move(config), dtype, layers);
  model.Build();
  return model;
}

std::uint32_t ModelTensors::Append(std::string name, Weight weight) {
  const Dtype dtype = weight == Weight::kRouterBias ? Dtype::kFp32 : dtype_;
  tensors_.push_back({std::move(name), dtype, ShapeOf(config_, weight), false});
  return static_cast<std::uint32_t>(tensors_.size() - 1);
}

// By name: layers in the order of their numbers as texts, and each layer's tensors in the order of
// what comes after, which is the same for all layers of a kind.
void ModelTensors::Build() {
  outside_.assign(kFirstOfLayer, kNone);
  in_layer_.resize(static_cast<std::size_t>(layers_));
  tensors_.reserve(static_cast<std::size_t>(TensorsOf(config_, layers_)) + kFirstOfLayer);
  if (!config_.tied) outside_[Number(Weight::kHead)] = Append("lm_head.weight", Weight::kHead);
  outside_[Number(Weight::kEmbedding)] = Append("model.embed_tokens.weight", Weight::kEmbedding);
  std::vector<std::pair<std::string, std::size_t>> layers;
  for (std::size_t layer = 0; layer < in_layer_.size(); ++layer) {
    layers.emplace_back(absl::StrCat("model.layers.", layer, "."), layer);
  }
  std::sort(layers.begin(), layers.end());
  const std::array names{NamesOfLayer(config_, false), NamesOfLayer(config_, true)};
  for (const auto& [prefix, layer] : layers) {
    const bool sparse = config_.sparse[layer];
    std::vector<std::uint32_t>& block = in_layer_[layer];
    block.assign(kOfLayer + (sparse ? static_cast<std::size_t>(config_.experts) * kOfExpert : 0),
                 kNone);
    for (const auto& [name, place] : names.at(sparse ? 1 : 0)) {
      const std::size_t weight = place < kOfLayer ? kFirstOfLayer + place
                                                  : kFirstOfExpert + (place - kOfLayer) % kOfExpert;
      block[place] = Append(absl::StrCat(prefix, name), static_cast<Weight>(weight));
    }
  }
  outside_[Number(Weight::kFinalNorm)] = Append("model.norm.weight", Weight::kFinalNorm);
}

std::optional<TensorId> ModelTensors::Find(Weight weight) const {
  const std::uint32_t id = outside_[Number(weight)];
  if (id == kNone) return std::nullopt;
  return TensorId(id);
}

std::optional<TensorId> ModelTensors::Find(Weight weight, std::int64_t layer) const {
  if (layer >= layers_) return std::nullopt;
  const std::uint32_t id =
      in_layer_[static_cast<std::size_t>(layer)][Number(weight) - kFirstOfLayer];
  if (id == kNone) return std::nullopt;
  return TensorId(id);
}

TensorId ModelTensors::Expert(Weight weight, std::int64_t layer, std::int64_t expert) const {
  const std::size_t place =
      kOfLayer + static_cast<std::size_t>(expert) * kOfExpert + (Number(weight) - kFirstOfExpert);
  return TensorId(in_layer_[static_cast<std::size_t>(layer)][place]);
}

}  // namespace wb
