// The layout files in deploy/examples were written by hand: what is generated from the same sizes
// has to be the same.

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "planner/frameworks/megatron_layout.h"
#include "planner/frameworks/sglang_layout.h"
#include "proto/convert.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

Job Example(const std::string& name) {
  std::variant<LoadedJob, Refusals> loaded =
      JobFromJson(ReadWholeFile(std::string(WB_EXAMPLES) + "/" + name + ".json"));
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) FAIL(refusals->front().text);
  return std::get<LoadedJob>(std::move(loaded)).job;
}

// In any order of params, which nothing depends on: by the names of params.
using Placed = std::tuple<std::string, TensorId, Box, std::uint64_t, Index, Index, Index>;

std::set<Placed> PlacedIn(const Layout& layout, bool vocabulary) {
  std::set<Placed> placed;
  for (const Piece& piece : layout.pieces) {
    const std::string& param = layout.params[piece.param].name;
    if (!vocabulary && (param == "lm_head.weight" || param == "model.embed_tokens.weight")) {
      continue;
    }
    placed.insert(
        {param, piece.tensor, piece.box, piece.offset_bytes, piece.strides, piece.at, piece.axes});
  }
  return placed;
}

// Vocabularies of engines are left out where the file does not pad them.
void RequireSame(const Layout& made, const Layout& written, bool vocabulary) {
  INFO(written.name.ToString());
  REQUIRE(made.params.size() == written.params.size());
  REQUIRE(made.pieces.size() == written.pieces.size());
  CHECK(PlacedIn(made, vocabulary) == PlacedIn(written, vocabulary));
  for (const Param& param : written.params) {
    const Param& own = ParamNamed(made, param.name);
    CHECK(own.dtype == param.dtype);
    if (vocabulary) CHECK(own.shape == param.shape);
  }
}

// The first ranks of the group, as many as are given.
void RequireSameRanks(const Job& example,
                      const std::string& group,
                      const RankLayouts& made,
                      bool vocabulary) {
  std::size_t ranks = 0;
  for (const Layout& layout : example.layouts) {
    if (layout.name.group != group || ranks == made.size()) continue;
    RequireSame(made[ranks++], layout, vocabulary);
  }
  CHECK(ranks == made.size());
}

TEST_CASE("the DeepSeek example is what its sizes generate", "[frameworks]") {
  const Job example = Example("tiny-deepseek-moe");
  const nlohmann::json config{{"architectures", {"DeepseekV3ForCausalLM"}},
                              {"model_type", "deepseek_v3"},
                              {"first_k_dense_replace", 1},
                              {"hidden_size", 256},
                              {"intermediate_size", 384},
                              {"kv_lora_rank", 64},
                              {"moe_intermediate_size", 64},
                              {"n_routed_experts", 8},
                              {"n_shared_experts", 1},
                              {"num_attention_heads", 8},
                              {"num_hidden_layers", 3},
                              {"q_lora_rank", 96},
                              {"qk_nope_head_dim", 16},
                              {"qk_rope_head_dim", 8},
                              {"tie_word_embeddings", false},
                              {"topk_method", "noaux_tc"},
                              {"v_head_dim", 16},
                              {"vocab_size", 512}};
  const ModelTensors model = MustModel(config);
  CHECK(model.tensors() == example.tensors);
  RequireSameRanks(example, "policy",
                   MustLayOut(model, MegatronLayout{.ranks = 4, .tp = 2, .ep = 4, .pipeline = {}}),
                   true);
  RequireSameRanks(example, "engine0",
                   MustLayOut(model, SglangLayout{.tp = 4,
                                                  .ep = 4,
                                                  .dp = 2,
                                                  .dp_lm_head = true,
                                                  .dense_tp_one = true,
                                                  .physical_to_logical = {}}),
                   true);
}

TEST_CASE("the Qwen3 example is what its sizes generate", "[frameworks]") {
  const Job example = Example("tiny-qwen3-moe");
  const nlohmann::json config{{"architectures", {"Qwen3MoeForCausalLM"}},
                              {"model_type", "qwen3_moe"},
                              {"attention_bias", false},
                              {"head_dim", 32},
                              {"hidden_size", 256},
                              {"intermediate_size", 512},
                              {"moe_intermediate_size", 96},
                              {"num_attention_heads", 8},
                              {"num_experts", 8},
                              {"num_hidden_layers", 4},
                              {"num_key_value_heads", 2},
                              {"tie_word_embeddings", false},
                              {"vocab_size", 1000}};
  const ModelTensors model = MustModel(config);
  CHECK(model.tensors() == example.tensors);
  RankLayouts trainer = MustLayOut(
      model, MegatronLayout{.ranks = 8, .tp = 2, .ep = 4, .pipeline = {.pp = 2, .layout = ""}});
  trainer.resize(4);  // the file numbers the second stage's layers as the model does
  RequireSameRanks(example, "policy", trainer, true);
  const RankLayouts engine =
      MustLayOut(model, SglangLayout{.tp = 4, .ep = 4, .physical_to_logical = {}});
  RequireSameRanks(example, "engine0", engine, false);
  RequireSameRanks(example, "engine1", engine, false);
}

}  // namespace
}  // namespace wb::test
