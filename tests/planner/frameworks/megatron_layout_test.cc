#include "planner/frameworks/megatron_layout.h"

#include <string>
#include <vector>

#include "tests/planner/frameworks/canonical.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using Texts = std::vector<std::string>;

TEST_CASE("Megatron keeps each query group together: queries, key, value", "[frameworks]") {
  const ModelTensors model = MustModel(SmallQwen3(), 1);  // 8 heads, 4 key heads, of 8
  const RankLayouts ranks = MustLayOut(model, MegatronLayout{.ranks = 2, .tp = 2, .pipeline = {}});
  const std::string attention = "decoder.layers.0.self_attention.";
  CHECK(ParamNamed(ranks[1], attention + "linear_qkv.weight").shape == Index{64, 32});
  const std::string in = "model.layers.0.self_attn.";
  CHECK(PiecesOf(model, ranks[1], attention + "linear_qkv.weight") ==
        Texts{in + "q_proj.weight [32,0]..[48,32] at [0,0]",
              in + "k_proj.weight [16,0]..[24,32] at [16,0]",
              in + "v_proj.weight [16,0]..[24,32] at [24,0]",
              in + "q_proj.weight [48,0]..[64,32] at [32,0]",
              in + "k_proj.weight [24,0]..[32,32] at [48,0]",
              in + "v_proj.weight [24,0]..[32,32] at [56,0]"});
  CHECK(PiecesOf(model, ranks[0], attention + "linear_qkv.bias") ==
        Texts{in + "q_proj.bias [0]..[16] at [0]", in + "k_proj.bias [0]..[8] at [16]",
              in + "v_proj.bias [0]..[8] at [24]", in + "q_proj.bias [16]..[32] at [32]",
              in + "k_proj.bias [8]..[16] at [48]", in + "v_proj.bias [8]..[16] at [56]"});
  CHECK(PiecesOf(model, ranks[1], attention + "linear_proj.bias") ==
        Texts{in + "o_proj.bias [0]..[32] at [0]"});
}

TEST_CASE("Megatron pads the vocabulary, and padding is no part of the model", "[frameworks]") {
  const ModelTensors model = MustModel(ExampleConfig("qwen3-30b-a3b"), 1);
  const RankLayouts ranks = MustLayOut(model, Qwen30B().trainer);
  CHECK(ParamNamed(ranks[3], "output_layer.weight").shape == Index{38'016, 2048});
  CHECK(PiecesOf(model, ranks[3], "output_layer.weight") ==
        Texts{"lm_head.weight [114048,0]..[151936,2048] at [0,0]"});
}

TEST_CASE("every element of every model is held as often as its parallel sizes say",
          "[frameworks]") {
  const ModelTensors model = MustModel(SmallDeepseek());
  const MegatronLayout megatron{.ranks = 32,
                                .tp = 2,
                                .cp = 2,
                                .ep = 2,
                                .etp = 2,
                                .pipeline = {.pp = 2, .first_stage_layers = 1, .layout = ""}};
  const RankLayouts ranks = MustLayOut(model, megatron);
  CHECK(Holders(model, ranks, "model.embed_tokens.weight") == 8);
  CHECK(Holders(model, ranks, "model.layers.1.self_attn.q_a_proj.weight") == 16);
  CHECK(Holders(model, ranks, "model.layers.1.self_attn.q_b_proj.weight") == 8);
  CHECK(Holders(model, ranks, "model.layers.1.self_attn.o_proj.weight") == 8);
  CHECK(Holders(model, ranks, "model.layers.1.mlp.gate.weight") == 16);
  CHECK(Holders(model, ranks, "model.layers.1.mlp.experts.7.up_proj.weight") == 4);
  CHECK(Holders(model, ranks, "model.layers.1.mlp.experts.7.down_proj.weight") == 4);
  CHECK(Holders(model, ranks, "model.layers.1.mlp.shared_experts.down_proj.weight") == 8);
  for (const Tensor& tensor : model.tensors()) CHECK(Holders(model, ranks, tensor.name) >= 4);
}

TEST_CASE("experts follow each other over the ranks after their own tensor parallelism",
          "[frameworks]") {
  const ModelTensors model = MustModel(SmallDeepseek());
  const RankLayouts ranks =
      MustLayOut(model, MegatronLayout{.ranks = 8, .tp = 1, .ep = 4, .etp = 2, .pipeline = {}});
  // Rank 3: half 1 of experts 2 and 3.
  CHECK(PiecesOf(model, ranks[3], "decoder.layers.1.mlp.experts.linear_fc1.weight1") ==
        Texts{"model.layers.1.mlp.experts.3.gate_proj.weight [8,0]..[16,32] at [0,0]",
              "model.layers.1.mlp.experts.3.up_proj.weight [8,0]..[16,32] at [8,0]"});
  CHECK(PiecesOf(model, ranks[3], "decoder.layers.1.mlp.experts.linear_fc2.weight0") ==
        Texts{"model.layers.1.mlp.experts.2.down_proj.weight [0,8]..[32,16] at [0,0]"});
}

TEST_CASE("sequential experts are modules of their own", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMixtral());
  const RankLayouts ranks = MustLayOut(
      model,
      MegatronLayout{.ranks = 2, .ep = 2, .pipeline = {}, .experts = MegatronExperts::kSequential});
  const std::string experts = "decoder.layers.1.mlp.experts.local_experts.1.";
  CHECK(PiecesOf(model, ranks[1], experts + "linear_fc2.weight") ==
        Texts{"model.layers.1.block_sparse_moe.experts.3.w2.weight [0,0]..[32,24] at [0,0]"});
  CHECK(PiecesOf(model, ranks[1], experts + "linear_fc1.weight").size() == 2);
}

TEST_CASE("ranks that hold the same share one description", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe());
  const RankLayouts ranks =
      MustLayOut(model, MegatronLayout{.ranks = 8, .tp = 2, .ep = 4, .pipeline = {}});
  const RankLayouts twice =
      MustLayOut(model, MegatronLayout{.ranks = 16, .tp = 2, .ep = 4, .pipeline = {}});
  CHECK_FALSE(ranks[0].pieces.data() == ranks[2].pieces.data());
  CHECK(twice[0].pieces.data() == twice[4].pieces.data());
  CHECK(twice[3].params.data() == twice[15].params.data());
  CHECK(twice[12].name.rank == 12);
}

TEST_CASE("a tied head is the embedding, on the last stage a copy",
          "[field][case-32][frameworks]") {
  const ModelTensors model = MustModel(ExampleConfig("qwen3-0.6b"), 1);
  const RankLayouts one = MustLayOut(model, MegatronLayout{.ranks = 2, .tp = 2, .pipeline = {}});
  CHECK_FALSE(HasParam(one[0], "output_layer.weight"));
  const RankLayouts two =
      MustLayOut(model, MegatronLayout{.ranks = 2, .pipeline = {.pp = 2, .layout = ""}});
  CHECK(PiecesOf(model, two[1], "output_layer.weight") ==
        Texts{"model.embed_tokens.weight [0,0]..[151936,1024] at [0,0]"});
  CHECK(Holders(model, two, "model.embed_tokens.weight") == 2);
}

TEST_CASE("sizes that the model does not allow are refused with the reason", "[frameworks]") {
  auto heads = SmallQwen3();
  heads.update({{"num_attention_heads", 6}, {"num_key_value_heads", 6}, {"head_dim", 128}});
  CHECK(Reasons(MustModel(heads), MegatronLayout{.ranks = 8, .tp = 8, .pipeline = {}}) ==
        Texts{"tp is 8, which gives 96 rows per rank where a head has 128; want one that divides "
              "num_key_value_heads (6)"});
  const ModelTensors moe = MustModel(SmallMoe());
  CHECK(Reasons(moe, MegatronLayout{.ranks = 12, .ep = 3, .pipeline = {}}) ==
        Texts{"ep is 3, want one that divides the number of experts (8)"});
  CHECK(Reasons(moe, MegatronLayout{.ranks = 8, .ep = 8, .etp = 8, .pipeline = {}}) ==
        Texts{"ep x etp is 64, want one that divides the ranks of a stage (8)",
              "etp is 8, want one that divides the rows of an expert (12)"});
  CHECK(Reasons(moe, MegatronLayout{.ranks = 6, .tp = 2, .cp = 2, .pipeline = {}}) ==
        Texts{"tp x cp is 4, want one that divides the ranks of a stage (6)"});
  CHECK(Reasons(moe, MegatronLayout{.ranks = 4, .pipeline = {.pp = 3, .layout = ""}}).size() == 2);
  CHECK(Reasons(MustModel(SmallQwen3()), MegatronLayout{.ranks = 2, .ep = 2, .pipeline = {}}) ==
        Texts{"ep is 2, want 1: the model has no experts"});
}

}  // namespace
}  // namespace wb::test
