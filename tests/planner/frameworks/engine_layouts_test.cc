// SGLang and vLLM: what the ranks of an engine hold.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/frameworks/sglang_layout.h"
#include "planner/frameworks/vllm_layout.h"
#include "tests/planner/frameworks/canonical.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using Texts = std::vector<std::string>;
using Map = std::vector<std::vector<std::int64_t>>;

SglangLayout Sglang(std::int64_t tp, std::int64_t ep) {
  return {.tp = tp, .ep = ep, .physical_to_logical = {}};
}

TEST_CASE("queries, keys and values are stacked, and key heads are shared by ranks",
          "[frameworks]") {
  const ModelTensors model = MustModel(SmallQwen3(), 1);
  const std::string param = "model.layers.0.self_attn.qkv_proj.weight";
  const std::string in = "model.layers.0.self_attn.";
  const RankLayouts two = MustLayOut(model, Sglang(2, 1));
  CHECK(PiecesOf(model, two[1], param) == Texts{in + "q_proj.weight [32,0]..[64,32] at [0,0]",
                                                in + "k_proj.weight [16,0]..[32,32] at [32,0]",
                                                in + "v_proj.weight [16,0]..[32,32] at [48,0]"});
  const RankLayouts eight = MustLayOut(model, Sglang(8, 1));
  CHECK(PiecesOf(model, eight[5], param) == Texts{in + "q_proj.weight [40,0]..[48,32] at [0,0]",
                                                  in + "k_proj.weight [16,0]..[24,32] at [8,0]",
                                                  in + "v_proj.weight [16,0]..[24,32] at [16,0]"});
  CHECK(Holders(model, eight, in + "k_proj.weight") == 2);
  CHECK(Holders(model, eight, in + "k_proj.bias") == 2);
  CHECK(Holders(model, eight, in + "q_proj.weight") == 1);
  CHECK(Holders(model, eight, in + "o_proj.bias") == 8);
}

TEST_CASE("data-parallel attention cuts attention and embedding less, and dense layers not at all",
          "[frameworks]") {
  const ModelTensors model = MustModel(SmallDeepseek());
  const SglangLayout sglang{.tp = 8,
                            .ep = 8,
                            .dp = 4,
                            .dp_lm_head = false,
                            .dense_tp_one = true,
                            .physical_to_logical = {}};
  const RankLayouts ranks = MustLayOut(model, sglang);
  CHECK(Holders(model, ranks, "model.embed_tokens.weight") == 4);
  CHECK(Holders(model, ranks, "lm_head.weight") == 1);
  CHECK(Holders(model, ranks, "model.layers.1.self_attn.q_b_proj.weight") == 4);
  CHECK(Holders(model, ranks, "model.layers.1.self_attn.kv_a_proj_with_mqa.weight") == 8);
  CHECK(Holders(model, ranks, "model.layers.0.mlp.down_proj.weight") == 8);
  CHECK(Holders(model, ranks, "model.layers.1.mlp.shared_experts.up_proj.weight") == 1);
  CHECK(Holders(model, ranks, "model.layers.1.mlp.experts.3.up_proj.weight") == 1);
  SglangLayout head = sglang;
  head.dp_lm_head = true;
  CHECK(Holders(model, MustLayOut(model, head), "lm_head.weight") == 4);
  SglangLayout deepep = sglang;
  deepep.shared_experts_whole = true;
  CHECK(Holders(model, MustLayOut(model, deepep),
                "model.layers.1.mlp.shared_experts.up_proj.weight") == 8);
}

TEST_CASE("without data parallelism its flags say nothing", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe());
  SglangLayout flagged = Sglang(4, 4);
  flagged.dp_lm_head = true;
  const RankLayouts with = MustLayOut(model, flagged);
  const RankLayouts without = MustLayOut(model, Sglang(4, 4));
  for (std::size_t r = 0; r < with.size(); ++r) CHECK(with[r] == without[r]);
}

TEST_CASE("experts are cut by ranks and rows where ep is less than tp", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe());
  const RankLayouts ranks = MustLayOut(model, Sglang(4, 2));
  CHECK(ParamNamed(ranks[3], "model.layers.0.mlp.experts.w13_weight").shape == Index{4, 12, 32});
  const std::string experts = "model.layers.0.mlp.experts.";
  CHECK(PiecesOf(model, ranks[3], experts + "w13_weight")[1] ==
        experts + "4.up_proj.weight [6,0]..[12,32] at [0,6,0]");
  CHECK(PiecesOf(model, ranks[3], experts + "w2_weight")[3] ==
        experts + "7.down_proj.weight [0,6]..[32,12] at [3,0,0]");
}

TEST_CASE("redundant experts are held where the map has them", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe());
  SglangLayout sglang = Sglang(4, 4);
  sglang.redundant_experts = 4;
  const std::string expert = "model.layers.0.mlp.experts.2.up_proj.weight";
  CHECK(Holders(model, MustLayOut(model, sglang), expert) == 2);  // slots 2 and 10
  sglang.physical_to_logical = {{0, 1, 2, 3, 4, 5, 6, 7, 2, 2, 5, 2}};
  const RankLayouts ranks = MustLayOut(model, sglang);
  CHECK(PiecesOf(model, ranks[3], "model.layers.0.mlp.experts.w2_weight")[1] ==
        "model.layers.0.mlp.experts.5.down_proj.weight [0,0]..[32,12] at [1,0,0]");
  CHECK(RequireArrives(
            JobOf(model, MustLayOut(model, MegatronLayout{.ranks = 1, .pipeline = {}}), {ranks}))
            .unused.empty());
}

TEST_CASE("a map of experts that is none is refused with the slot", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe());
  const auto reasons = [&](Map map) {
    SglangLayout sglang = Sglang(2, 2);
    sglang.physical_to_logical = std::move(map);
    return Reasons(model, sglang);
  };
  CHECK(reasons({{0, 1, 2, 3, 4, 5, 6, 8}}) ==
        Texts{"physical_to_logical[0][7] is 8, want an expert from 0 below 8"});
  CHECK(reasons({{0, 1, 2, 3, 4, 5, 6, 6}}) ==
        Texts{"the slots of physical_to_logical[0] with expert 7 is 0, want at least 1"});
  CHECK(reasons({{0, 1}}) ==
        Texts{"the length of physical_to_logical[0] is 2, want one for each of 8 slots"});
  const std::vector<std::int64_t> good{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(reasons({good, good}) ==
        Texts{"the number of lists of physical_to_logical is 2, want 1, or one for each of 4 "
              "layers"});
}

TEST_CASE("engines refuse heads in pieces and rows that do not divide", "[frameworks]") {
  auto heads = SmallQwen3();
  heads.update({{"num_attention_heads", 6}, {"num_key_value_heads", 6}, {"head_dim", 128}});
  const Texts pieces = Reasons(MustModel(heads), Sglang(8, 1));
  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0] ==
        "tp is 8, which gives 96 rows per rank where a head has 128; want one that divides "
        "num_attention_heads (6)");
  heads["num_key_value_heads"] = 2;
  CHECK(Reasons(MustModel(heads), Sglang(3, 1)) ==
        Texts{"tp is 3, want one that divides num_key_value_heads (2) or is a multiple of it"});
  CHECK(Reasons(MustModel(SmallDeepseek()), Sglang(32, 8)).front() ==
        "tp is 32, which gives 48 rows that do not divide by it, where a head has 12; want one "
        "that divides num_attention_heads (4)");
  CHECK(Reasons(MustModel(SmallMoe()), SglangLayout{.tp = 8, .ep = 3, .physical_to_logical = {}}) ==
        Texts{"ep is 3, want one that divides tp (8)"});
  CHECK(Reasons(MustModel(SmallQwen3()), Sglang(2, 2)) ==
        Texts{"ep is 2, want 1: the model has no experts"});
}

TEST_CASE("vLLM spreads experts over all ranks, the first take what is left over", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe());
  const VllmLayout vllm{.tp = 1, .dp = 3, .ep = true, .pp_layers = {}};
  const RankLayouts ranks = MustLayOut(model, vllm);
  const std::string w2 = "model.layers.0.mlp.experts.w2_weight";
  CHECK(ParamNamed(ranks[0], w2).shape == Index{3, 32, 12});
  CHECK(ParamNamed(ranks[2], w2).shape == Index{2, 32, 12});
  CHECK(PiecesOf(model, ranks[2], w2)[0] ==
        "model.layers.0.mlp.experts.6.down_proj.weight [0,0]..[32,12] at [0,0,0]");
  CHECK(Holders(model, ranks, "model.layers.0.self_attn.q_proj.weight") == 3);
}

TEST_CASE("vLLM cuts experts' rows over dp and tp without expert parallelism", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe());
  const RankLayouts ranks = MustLayOut(model, VllmLayout{.tp = 2, .dp = 2, .pp_layers = {}});
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    CHECK(Holders(model, ranks, std::string("model.layers.0.mlp.experts.0.") + name + ".weight") ==
          1);
  }
  CHECK(Holders(model, ranks, "lm_head.weight") == 2);
}

TEST_CASE("vLLM's stages hold their layers by the model's numbers", "[frameworks]") {
  const ModelTensors model = MustModel(SmallDeepseek());
  const RankLayouts ranks = MustLayOut(model, VllmLayout{.tp = 2, .pp = 2, .pp_layers = {1, 2}});
  CHECK(HasParam(ranks[1], "model.embed_tokens.weight"));
  CHECK_FALSE(HasParam(ranks[1], "model.layers.1.input_layernorm.weight"));
  CHECK(HasParam(ranks[2], "model.layers.2.self_attn.fused_qkv_a_proj.weight"));
  CHECK(HasParam(ranks[2], "model.norm.weight"));
  CHECK_FALSE(HasParam(ranks[2], "model.embed_tokens.weight"));
  CHECK(Reasons(model, VllmLayout{.tp = 1, .pp = 2, .pp_layers = {1, 1, 2}}) ==
        Texts{"the number of pp_layers is 3, want pp (2)",
              "the sum of pp_layers is 4, want num_hidden_layers (3)"});
}

TEST_CASE("a vocabulary share that is all padding is a param that nobody writes", "[frameworks]") {
  auto config = SmallQwen3();
  config.update({{"vocab_size", 65}, {"num_key_value_heads", 8}});
  const ModelTensors model = MustModel(config, 1);  // 128 rows with padding
  const RankLayouts ranks = MustLayOut(model, Sglang(4, 1));
  CHECK(PiecesOf(model, ranks[2], "lm_head.weight") ==
        Texts{"lm_head.weight [64,0]..[65,32] at [0,0]"});
  CHECK(ParamNamed(ranks[3], "lm_head.weight").local);
  CHECK_FALSE(ParamNamed(ranks[2], "lm_head.weight").local);
}

}  // namespace
}  // namespace wb::test
