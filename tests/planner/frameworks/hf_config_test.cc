#include "planner/frameworks/hf_config.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"

#include "planner/frameworks/model_tensors.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;

Texts RefusedConfig(const std::string& text) {
  const std::variant<HfConfig, Refusals> parsed = ParseHfConfig(text, "config.json");
  if (!std::holds_alternative<Refusals>(parsed)) return {};
  for (const Refusal& refusal : std::get<Refusals>(parsed)) CHECK(refusal.kind == "model");
  return TextsOf(std::get<Refusals>(parsed));
}

Texts RefusedWith(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return RefusedConfig(config.dump());
}

Texts RefusedWithout(Json config, const std::string& key) {
  config.erase(key);
  return RefusedConfig(config.dump());
}

std::string ShapeText(const ModelTensors& model, const std::string& name) {
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.name == name) return absl::StrJoin(tensor.shape, "x");
  }
  return "none";
}

std::int64_t Parameters(const ModelTensors& model) {
  std::int64_t parameters = 0;
  for (const Tensor& tensor : model.tensors()) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    parameters += elements;
  }
  return parameters;
}

// GB of the tensors with any of these in their names.
double Gigabytes(const ModelTensors& model, const Texts& words) {
  std::int64_t bytes = 0;
  for (const Tensor& tensor : model.tensors()) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    const bool named = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return tensor.name.find(word) != std::string::npos;
    });
    if (named) bytes += elements * DtypeBytes(tensor.dtype);
  }
  return static_cast<double>(bytes) / 1e9;
}

struct Published {
  std::string config;
  std::int64_t parameters;
  double gigabytes;
  std::size_t tensors;
  double experts;
  double attention;
  double shared;
  double vocabulary;
  double router;
};

TEST_CASE("the four models have the parameters, bytes and tensors of their checkpoints",
          "[frameworks]") {
  const auto [config, parameters, gigabytes, tensors, experts, attention, shared, vocabulary,
              router] = GENERATE(Published{"moonlight-16b-a3b", 15'960'110'208, 31.920, 5'317,
                                           28.790, 0.743, 0.900, 1.342, 0.007},
                                 Published{"qwen3-30b-a3b", 30'532'122'624, 61.064, 18'867, 57.982,
                                           1.812, 0, 1.245, 0.025},
                                 Published{"qwen3-235b-a22b", 235'093'634'560, 470.187, 36'945,
                                           454.193, 13.405, 0, 2.489, 0.099},
                                 Published{"kimi-k2", 1'026'408'232'448, 2052.817, 69'975, 2029.372,
                                           12.337, 5.285, 4.698, 0.330});
  INFO(config);
  const ModelTensors model = MustModel(ExampleConfig(config));
  CHECK(Parameters(model) == parameters);
  CHECK(model.tensors().size() == tensors);
  CHECK(static_cast<double>(ModelBytes(model)) / 1e9 == Approx(gigabytes).margin(0.0005));
  CHECK(Gigabytes(model, {".experts."}) == Approx(experts).margin(0.0005));
  CHECK(Gigabytes(model, {".self_attn."}) == Approx(attention).margin(0.0005));
  CHECK(Gigabytes(model, {".shared_experts."}) == Approx(shared).margin(0.0005));
  CHECK(Gigabytes(model, {"embed_tokens", "lm_head"}) == Approx(vocabulary).margin(0.0005));
  CHECK(Gigabytes(model, {".mlp.gate."}) == Approx(router).margin(0.0005));
  CHECK(std::is_sorted(model.tensors().begin(), model.tensors().end(),
                       [](const Tensor& a, const Tensor& b) { return a.name < b.name; }));
}

TEST_CASE("Kimi-K2's tensors are shaped as in its checkpoint", "[frameworks]") {
  const ModelTensors model = MustModel(ExampleConfig("kimi-k2"));
  const std::map<std::string, std::string> shapes{
      {"model.embed_tokens.weight", "163840x7168"},
      {"model.norm.weight", "7168"},
      {"model.layers.0.mlp.gate_proj.weight", "18432x7168"},
      {"model.layers.0.mlp.down_proj.weight", "7168x18432"},
      {"model.layers.0.mlp.gate.weight", "none"},
      {"model.layers.60.self_attn.q_proj.weight", "none"},
      {"model.layers.60.self_attn.q_a_proj.weight", "1536x7168"},
      {"model.layers.60.self_attn.q_a_layernorm.weight", "1536"},
      {"model.layers.60.self_attn.q_b_proj.weight", "12288x1536"},
      {"model.layers.60.self_attn.kv_a_proj_with_mqa.weight", "576x7168"},
      {"model.layers.60.self_attn.kv_a_layernorm.weight", "512"},
      {"model.layers.60.self_attn.kv_b_proj.weight", "16384x512"},
      {"model.layers.60.self_attn.o_proj.weight", "7168x8192"},
      {"model.layers.60.mlp.gate.weight", "384x7168"},
      {"model.layers.60.mlp.gate.e_score_correction_bias", "384"},
      {"model.layers.60.mlp.experts.383.up_proj.weight", "2048x7168"},
      {"model.layers.60.mlp.experts.383.down_proj.weight", "7168x2048"},
      {"model.layers.60.mlp.shared_experts.gate_proj.weight", "2048x7168"}};
  for (const auto& [name, shape] : shapes)
    CHECK(name + " " + ShapeText(model, name) == name + " " + shape);
}

TEST_CASE("each architecture has its own biases, norms and names", "[frameworks]") {
  Json qwen2 = SmallQwen3();
  qwen2.update({{"architectures", {"Qwen2ForCausalLM"}}, {"model_type", "qwen2"}});
  qwen2.erase("head_dim");
  qwen2.erase("attention_bias");
  const ModelTensors two = MustModel(qwen2);
  CHECK(ShapeText(two, "model.layers.0.self_attn.q_proj.weight") == "32x32");
  CHECK(ShapeText(two, "model.layers.0.self_attn.k_proj.bias") == "16");
  CHECK(ShapeText(two, "model.layers.0.self_attn.o_proj.bias") == "none");
  CHECK(ShapeText(two, "model.layers.0.self_attn.q_norm.weight") == "none");

  const ModelTensors three = MustModel(SmallQwen3());
  CHECK(ShapeText(three, "model.layers.3.self_attn.q_proj.weight") == "64x32");
  CHECK(ShapeText(three, "model.layers.3.self_attn.q_norm.weight") == "8");
  CHECK(ShapeText(three, "model.layers.3.self_attn.o_proj.bias") == "32");

  Json llama = qwen2;
  llama.update({{"architectures", {"LlamaForCausalLM"}}, {"model_type", "llama"}});
  CHECK(ShapeText(MustModel(llama), "model.layers.0.self_attn.q_proj.bias") == "none");
  llama.update({{"mlp_bias", true}, {"tie_word_embeddings", true}});
  CHECK(ShapeText(MustModel(llama), "model.layers.0.mlp.up_proj.bias") == "48");
  CHECK(ShapeText(MustModel(llama), "lm_head.weight") == "none");

  const ModelTensors mixtral = MustModel(SmallMixtral());
  CHECK(ShapeText(mixtral, "model.layers.1.block_sparse_moe.gate.weight") == "4x32");
  CHECK(ShapeText(mixtral, "model.layers.1.block_sparse_moe.experts.3.w1.weight") == "24x32");
  CHECK(ShapeText(mixtral, "model.layers.1.block_sparse_moe.experts.3.w2.weight") == "32x24");

  Json second = SmallDeepseek();
  second.update({{"architectures", {"DeepseekV2ForCausalLM"}},
                 {"model_type", "deepseek_v2"},
                 {"topk_method", "greedy"},
                 {"q_lora_rank", nullptr}});
  const ModelTensors lite = MustModel(second);
  CHECK(ShapeText(lite, "model.layers.1.self_attn.q_proj.weight") == "48x32");
  CHECK(ShapeText(lite, "model.layers.1.mlp.gate.e_score_correction_bias") == "none");
}

TEST_CASE("layers are dense where the config says so", "[frameworks]") {
  Json config = SmallMoe();
  config.update({{"decoder_sparse_step", 2}, {"mlp_only_layers", {3}}});
  const ModelTensors model = MustModel(config);
  CHECK(model.config().sparse == std::vector<bool>{false, true, false, false});
  CHECK(ShapeText(model, "model.layers.3.mlp.gate_proj.weight") == "48x32");
  Json none = SmallMoe();
  none["mlp_only_layers"] = {0, 1, 2, 3};
  CHECK(MustModel(none).config().experts == 0);
}

TEST_CASE("a router's bias is FP32, whatever the dtype of the others", "[frameworks]") {
  const ModelTensors model = MustModel(SmallDeepseek());
  const TensorId bias = *model.Find(Weight::kRouterBias, 1);
  CHECK(model.tensor(bias).dtype == Dtype::kFp32);
  CHECK(model.tensor(*model.Find(Weight::kRouter, 1)).dtype == Dtype::kBf16);
}

TEST_CASE("a model's first layers are those of the whole, and the rest has no tensors",
          "[frameworks]") {
  const ModelTensors whole = MustModel(SmallDeepseek());
  const ModelTensors two = MustModel(SmallDeepseek(), 2);
  CHECK(two.config() == whole.config());
  CHECK(two.layers() == 2);
  for (const Tensor& tensor : two.tensors()) {
    CHECK(std::count(whole.tensors().begin(), whole.tensors().end(), tensor) == 1);
  }
  CHECK_FALSE(two.Find(Weight::kInputNorm, 2).has_value());
  CHECK(ShapeText(two, "lm_head.weight") == "128x32");
}

TEST_CASE("what is missing from a config is refused by its key", "[frameworks]") {
  const auto key = GENERATE("num_hidden_layers", "hidden_size", "vocab_size", "num_attention_heads",
                            "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                            "n_routed_experts", "n_shared_experts", "q_lora_rank",
                            "moe_intermediate_size", "intermediate_size", "first_k_dense_replace",
                            "tie_word_embeddings", "topk_method", "model_type");
  const Texts texts = RefusedWithout(SmallDeepseek(), key);
  REQUIRE(texts.size() == 1);
  CHECK(texts[0].rfind(std::string("config.json: ") + key + " is missing, want ", 0) == 0);
}

TEST_CASE("null says that a model has none, or as many heads of keys as of queries",
          "[frameworks]") {
  Json config = SmallDeepseek();
  config.update({{"q_lora_rank", nullptr}, {"n_shared_experts", nullptr}});
  const HfConfig none = MustModel(config, 1).config();
  CHECK(none.q_lora_rank == 0);
  CHECK(none.shared_intermediate == 0);
  Json grouped = SmallQwen3();
  grouped["num_key_value_heads"] = nullptr;
  CHECK(MustModel(grouped, 1).config().kv_heads == 8);
  CHECK(RefusedWithout(SmallQwen3(), "num_key_value_heads").size() == 1);
}

TEST_CASE("a config that is nested deep, very long or goes on after a zero byte is refused",
          "[frameworks]") {
  const std::string deep(80'000, '[');
  CHECK(RefusedConfig("{\"architectures\": " + deep + std::string(80'000, ']') + "}") ==
        Texts{"config.json: is nested deeper than 32 levels, want at most so many"});
  CHECK(RefusedConfig(deep) == Texts{"config.json: is no JSON at byte 80001"});
  CHECK(RefusedConfig(std::string((1 << 20) + 1, ' ')) ==
        Texts{"config.json: has 1048577 bytes, want at most 1048576"});
  CHECK(RefusedConfig(std::string("{}\0x", 4)) == Texts{"config.json: is no JSON at byte 3"});
  CHECK(RefusedConfig("{\"\\n\": 1, \"\\n\": 2}") ==
        Texts{"config.json: ;  is there twice, want each key once"});
}

TEST_CASE("a value of the wrong type or size is refused with what was wanted", "[frameworks]") {
  const Json config = SmallMoe();
  CHECK(RefusedWith(config, "hidden_size", 32.5) ==
        Texts{"config.json: hidden_size is 32.5, want an integer from 1 to 1048576"});
  CHECK(RefusedWith(config, "vocab_size", -1) ==
        Texts{"config.json: vocab_size is -1, want an integer from 1 to 16777216"});
  CHECK(RefusedWith(config, "num_experts", 18446744073709551615ULL) ==
        Texts{"config.json: num_experts is 18446744073709551615, want an integer from 1 to 16384",
              "config.json: num_experts_per_tok is 2, want an integer from 1 to 1"});
  CHECK(RefusedWith(config, "tie_word_embeddings", "no") ==
        Texts{"config.json: tie_word_embeddings is \"no\", want true or false"});
  CHECK(RefusedWith(config, "mlp_only_layers", {4}) ==
        Texts{"config.json: mlp_only_layers is [4], want a list of integers from 0 below 4"});
  CHECK(RefusedWith(config, "head_dim", nullptr) ==
        Texts{"config.json: head_dim is null, want an integer from 1 to 4096"});
}

TEST_CASE("values that contradict each other are refused with both", "[frameworks]") {
  CHECK(RefusedWith(SmallMoe(), "num_key_value_heads", 3) ==
        Texts{"config.json: num_key_value_heads is 3, want one that divides num_attention_heads "
              "(8)"});
  CHECK(RefusedWith(SmallDeepseek(), "num_key_value_heads", 2) ==
        Texts{"config.json: num_key_value_heads is 2, want num_attention_heads (4): latent "
              "attention has no groups"});
  CHECK(RefusedWith(SmallDeepseek(), "attention_bias", true).size() == 1);
  CHECK(RefusedWith(SmallDeepseek(), "first_k_dense_replace", 4) ==
        Texts{"config.json: first_k_dense_replace is 4, want an integer from 0 to 3"});
  CHECK(RefusedWith(SmallMixtral(), "num_experts_per_tok", 5) ==
        Texts{"config.json: num_experts_per_tok is 5, want an integer from 1 to 4"});
  CHECK(RefusedWith(SmallMixtral(), "hidden_size", 33) ==
        Texts{"config.json: hidden_size is 33, want a multiple of num_attention_heads (4) of at "
              "most 4096 times, as there is no head_dim"});
}

TEST_CASE("an architecture that is not known, or another than the model type, is refused",
          "[frameworks]") {
  const Texts unknown = RefusedWith(SmallMoe(), "architectures", {"Qwen3VLForCausalLM"});
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].rfind("config.json: architectures is [\"Qwen3VLForCausalLM\"], want one of "
                         "Qwen2ForCausalLM, ",
                         0) == 0);
  CHECK(RefusedWith(SmallMoe(), "architectures", {"A", "B"}).size() == 1);
  CHECK(RefusedWith(SmallMoe(), "model_type", "qwen3") ==
        Texts{"config.json: model_type is \"qwen3\", want qwen3_moe (of Qwen3MoeForCausalLM)"});
}

TEST_CASE("what is no JSON object, or has a key twice, is refused", "[frameworks]") {
  CHECK(RefusedConfig("[1]") == Texts{"config.json: is [1], want a JSON object"});
  CHECK(RefusedConfig("{\"a\": ") == Texts{"config.json: is no JSON at byte 7"});
  CHECK(RefusedConfig("{\"hidden_size\": 1, \"hidden_size\": 2}") ==
        Texts{"config.json: hidden_size is there twice, want each key once"});
}

TEST_CASE("a model of too many tensors is refused before they are made", "[frameworks]") {
  Json config = SmallMoe();
  config.update({{"num_hidden_layers", 4096}, {"num_experts", 16384}});
  const std::variant<HfConfig, Refusals> parsed = ParseHfConfig(config.dump(), "config.json");
  const std::variant<ModelTensors, Refusals> model =
      ModelTensors::Create(std::get<HfConfig>(parsed), Dtype::kBf16, 4096);
  CHECK(TextsOf(std::get<Refusals>(model)) ==
        Texts{"model: 4096 layers with 16384 experts have up to 201445376 tensors, want at most "
              "4000000"});
}

}  // namespace
}  // namespace wb::test
