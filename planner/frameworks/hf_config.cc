#include "planner/frameworks/hf_config.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/frameworks/json_reader.h"

namespace wb {
namespace {

constexpr std::int64_t kMaxHeadDim = 1 << 12;

// ---- what the architectures have in common ----

void ReadSizes(JsonReader& json, HfConfig& config) {
  config.layers = json.Integer("num_hidden_layers", 1, HfConfig::kMaxLayers);
  config.hidden = json.Integer("hidden_size", 1, HfConfig::kMaxExtent);
  config.vocab = json.Integer("vocab_size", 1, HfConfig::kMaxVocab);
  config.heads = json.Integer("num_attention_heads", 1, HfConfig::kMaxHeads);
  config.tied = json.Flag("tie_word_embeddings");
  config.sparse.assign(static_cast<std::size_t>(config.layers), false);
}

void ReadDense(JsonReader& json, HfConfig& config) {
  config.intermediate = json.Integer("intermediate_size", 1, HfConfig::kMaxExtent);
}

// Heads of hidden_size / num_attention_heads, unless head_dim says otherwise; as many of keys as of
// queries where null says so.
void ReadGroupedQueries(JsonReader& json, HfConfig& config) {
  config.kv_heads = json.IntegerOrNull("num_key_value_heads", 1, HfConfig::kMaxHeads, config.heads);
  if (config.heads % config.kv_heads != 0) {
    json.Refuse("num_key_value_heads",
                absl::StrCat("one that divides num_attention_heads (", config.heads, ")"));
  }
  if (!json.Lacks("head_dim")) {
    config.head_dim = json.Integer("head_dim", 1, kMaxHeadDim);
    return;
  }
  config.head_dim = std::max<std::int64_t>(1, config.hidden / config.heads);
  if (config.hidden % config.heads != 0 || config.head_dim > kMaxHeadDim) {
    json.Refuse("hidden_size",
                absl::StrCat("a multiple of num_attention_heads (", config.heads, ") of at most ",
                             kMaxHeadDim, " times, as there is no head_dim"));
  }
}

void ReadLatent(JsonReader& json, HfConfig& config) {
  config.latent = true;
  config.q_lora_rank = json.IntegerOrNull("q_lora_rank", 1, HfConfig::kMaxExtent, 0);
  config.kv_lora_rank = json.Integer("kv_lora_rank", 1, HfConfig::kMaxExtent);
  config.nope_dim = json.Integer("qk_nope_head_dim", 1, kMaxHeadDim);
  config.rope_dim = json.Integer("qk_rope_head_dim", 1, kMaxHeadDim);
  config.v_dim = json.Integer("v_head_dim", 1, kMaxHeadDim);
  if (json.Integer("num_key_value_heads", 1, HfConfig::kMaxHeads, config.heads) != config.heads) {
    json.Refuse("num_key_value_heads", absl::StrCat("num_attention_heads (", config.heads,
                                                    "): latent attention has no groups"));
  }
  if (json.Flag("attention_bias", false)) {
    json.Refuse("attention_bias", "false: latent attention with biases is not known here");
  }
}

void ReadExperts(JsonReader& json, const std::string& count_key, HfConfig& config) {
  config.experts = json.Integer(count_key, 1, HfConfig::kMaxExperts);
  if (!json.Lacks("num_experts_per_tok")) {
    json.Integer("num_experts_per_tok", 1, config.experts);
  }
}

// Dense layers need a size, and only they do.
void ForgetUnusedSizes(HfConfig& config) {
  const auto sparse = std::count(config.sparse.begin(), config.sparse.end(), true);
  if (sparse == config.layers) config.intermediate = 0;
  if (sparse > 0) return;
  config.experts = 0;
  config.expert_intermediate = 0;
  config.shared_intermediate = 0;
  config.router_bias = false;
}

// ---- one function an architecture ----

void ReadQwen2(JsonReader& json, HfConfig& config) {
  ReadGroupedQueries(json, config);
  ReadDense(json, config);
  config.qkv_bias = true;
}

void ReadQwen3(JsonReader& json, HfConfig& config) {
  ReadGroupedQueries(json, config);
  if (json.Lacks("head_dim")) json.Integer("head_dim", 1, kMaxHeadDim);  // refused
  ReadDense(json, config);
  config.qk_norm = true;
  config.qkv_bias = json.Flag("attention_bias");
  config.o_bias = config.qkv_bias;
}

void ReadQwen3Moe(JsonReader& json, HfConfig& config) {
  ReadQwen3(json, config);
  ReadExperts(json, "num_experts", config);
  config.expert_intermediate = json.Integer("moe_intermediate_size", 1, HfConfig::kMaxExtent);
  const std::int64_t step = json.Integer("decoder_sparse_step", 1, HfConfig::kMaxLayers, 1);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    config.sparse[static_cast<std::size_t>(layer)] = (layer + 1) % step == 0;
  }
  for (const std::int64_t dense : json.Indices("mlp_only_layers", config.layers)) {
    config.sparse[static_cast<std::size_t>(dense)] = false;
  }
}

void ReadLlama(JsonReader& json, HfConfig& config) {
  ReadGroupedQueries(json, config);
  ReadDense(json, config);
  config.qkv_bias = json.Flag("attention_bias", false);
  config.o_bias = config.qkv_bias;
  config.mlp_bias = json.Flag("mlp_bias", false);
}

void ReadMixtral(JsonReader& json, HfConfig& config) {
  ReadGroupedQueries(json, config);
  ReadExperts(json, "num_local_experts", config);
  config.expert_intermediate = json.Integer("intermediate_size", 1, HfConfig::kMaxExtent);
  config.sparse.assign(config.sparse.size(), true);
  config.mixtral_names = true;
}

void ReadDeepseek(JsonReader& json, HfConfig& config) {
  ReadLatent(json, config);
  ReadDense(json, config);
  ReadExperts(json, "n_routed_experts", config);
  config.expert_intermediate = json.Integer("moe_intermediate_size", 1, HfConfig::kMaxExtent);
  const std::int64_t shared = json.IntegerOrNull("n_shared_experts", 1, 1 << 10, 0);
  config.shared_intermediate = shared * config.expert_intermediate;
  if (config.shared_intermediate > HfConfig::kMaxExtent) {
    json.Refuse("n_shared_experts",
                absl::StrCat("shared experts of at most ", HfConfig::kMaxExtent, " rows in all"));
  }
  const std::int64_t first = json.Integer("first_k_dense_replace", 0, config.layers);
  const std::int64_t step = json.Integer("moe_layer_freq", 1, HfConfig::kMaxLayers, 1);
  for (std::int64_t layer = first; layer < config.layers; ++layer) {
    config.sparse[static_cast<std::size_t>(layer)] = layer % step == 0;
  }
  const std::string router = json.Text("topk_method");
  config.router_bias = router == "noaux_tc";
  if (!router.empty() && router != "noaux_tc" && router != "greedy" &&
      router != "group_limited_greedy") {
    json.Refuse("topk_method", "noaux_tc, greedy or group_limited_greedy");
  }
}

struct Architecture {
  const char* name;
  std::array<const char*, 2> model_types;
  void (*read)(JsonReader&, HfConfig&);
};
constexpr std::array<Architecture, 7> kArchitectures{
    {{"Qwen2ForCausalLM", {"qwen2", "qwen2"}, ReadQwen2},
     {"Qwen3ForCausalLM", {"qwen3", "qwen3"}, ReadQwen3},
     {"Qwen3MoeForCausalLM", {"qwen3_moe", "qwen3_moe"}, ReadQwen3Moe},
     {"LlamaForCausalLM", {"llama", "llama"}, ReadLlama},
     {"MixtralForCausalLM", {"mixtral", "mixtral"}, ReadMixtral},
     {"DeepseekV2ForCausalLM", {"deepseek_v2", "deepseek_v2"}, ReadDeepseek},
     {"DeepseekV3ForCausalLM", {"deepseek_v3", "kimi_k2"}, ReadDeepseek}}};

const Architecture* ReadArchitecture(JsonReader& json, HfConfig& config) {
  config.architecture = json.OnlyText("architectures");
  std::vector<std::string> known;
  for (const Architecture& architecture : kArchitectures) {
    known.emplace_back(architecture.name);
    if (config.architecture != architecture.name) continue;
    const std::string type = json.Text("model_type");
    const auto& types = architecture.model_types;
    if (!type.empty() && std::find(types.begin(), types.end(), type) == types.end()) {
      json.Refuse("model_type", absl::StrCat(types.back(), " (of ", config.architecture, ")"));
    }
    return &architecture;
  }
  if (!config.architecture.empty()) {
    json.Refuse("architectures", absl::StrCat("one of ", absl::StrJoin(known, ", ")));
  }
  return nullptr;
}

}  // namespace

std::variant<HfConfig, Refusals> ParseHfConfig(std::string_view json, const std::string& file) {
  JsonReader reader(json, file);
  if (!reader.refusals().empty()) return reader.refusals();
  HfConfig config;
  const Architecture* architecture = ReadArchitecture(reader, config);
  if (architecture == nullptr) return reader.refusals();
  ReadSizes(reader, config);
  architecture->read(reader, config);
  if (!reader.refusals().empty()) return reader.refusals();
  ForgetUnusedSizes(config);
  return config;
}

}  // namespace wb
