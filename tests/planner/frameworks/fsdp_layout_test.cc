#include "planner/frameworks/fsdp_layout.h"

#include <string>
#include <vector>

#include "planner/frameworks/sglang_layout.h"
#include "planner/model/plan_moves.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using Texts = std::vector<std::string>;

std::vector<Index> ShapesOf(const RankLayouts& ranks, const std::string& param) {
  std::vector<Index> shapes;
  for (const Layout& rank : ranks) shapes.push_back(ParamNamed(rank, param).shape);
  return shapes;
}

RankLayouts WholeEngine(const ModelTensors& model) {
  return MustLayOut(model, SglangLayout{.tp = 1, .physical_to_logical = {}});
}

TEST_CASE("uneven and empty chunks add up, and a rank without rows sends nothing",
          "[field][case-42][frameworks]") {
  auto config = SmallQwen3();
  config.update({{"num_attention_heads", 1}, {"num_key_value_heads", 1}, {"head_dim", 5}});
  const ModelTensors model = MustModel(config, 1);
  const std::string key = "model.layers.0.self_attn.k_proj.weight";
  CHECK(ShapesOf(MustLayOut(model, FsdpLayout{.shard = 2}), key) ==
        std::vector<Index>{{3, 32}, {2, 32}});
  config["head_dim"] = 2;
  const ModelTensors two = MustModel(config, 1);
  const RankLayouts four = MustLayOut(two, FsdpLayout{.shard = 4});
  CHECK(ShapesOf(four, key) == std::vector<Index>{{1, 32}, {1, 32}, {0, 32}, {0, 32}});
  for (const Tensor& tensor : two.tensors()) CHECK(Holders(two, four, tensor.name) == 1);
  RequireArrives(JobOf(two, four, {WholeEngine(two)}));
}

TEST_CASE("experts spread over ranks and cut along their rows come together",
          "[field][case-43][frameworks]") {
  auto config = SmallMixtral();  // 4 experts
  config.update({{"hidden_size", 12}, {"intermediate_size", 6}});
  const ModelTensors model = MustModel(config, 1);
  const RankLayouts ranks = MustLayOut(model, FsdpLayout{.shard = 6, .ep = 2});
  const std::string w1 = "model.layers.0.block_sparse_moe.experts.w1";
  CHECK(ShapesOf(ranks, w1) == std::vector<Index>(6, {2, 2, 12}));
  CHECK(PiecesOf(model, ranks[3], w1) ==
        Texts{"model.layers.0.block_sparse_moe.experts.2.w1.weight [2,0]..[4,12] at [0,0,0]",
              "model.layers.0.block_sparse_moe.experts.3.w1.weight [2,0]..[4,12] at [1,0,0]"});
  for (const Tensor& tensor : model.tensors()) CHECK(Holders(model, ranks, tensor.name) == 1);
  RequireArrives(JobOf(model, ranks, {WholeEngine(model)}));
}

TEST_CASE("enough experts are cut as a stack", "[frameworks]") {
  const ModelTensors model = MustModel(SmallMoe(), 1);  // 8 experts
  const RankLayouts ranks = MustLayOut(model, FsdpLayout{.shard = 6, .ep = 2});
  CHECK(ShapesOf(ranks, "model.layers.0.mlp.experts.w2") ==
        std::vector<Index>{
            {2, 32, 12}, {2, 32, 12}, {2, 32, 12}, {2, 32, 12}, {0, 32, 12}, {0, 32, 12}});
  for (const Tensor& tensor : model.tensors()) CHECK(Holders(model, ranks, tensor.name) == 1);
}

TEST_CASE("replicated shards are as many slices as shards, whatever the number of ranks",
          "[field][case-44][frameworks]") {
  auto config = SmallQwen3();
  config.update({{"num_attention_heads", 2}, {"num_key_value_heads", 2}});
  const ModelTensors model = MustModel(config, 1);
  const RankLayouts ranks = MustLayOut(model, FsdpLayout{.shard = 4, .replicate = 2});
  REQUIRE(ranks.size() == 8);
  const std::string key = "model.layers.0.self_attn.k_proj.weight";  // 16 rows
  CHECK(Holders(model, ranks, key) == 2);
  CHECK(ranks[1].pieces.data() == ranks[5].pieces.data());
  const Job job = JobOf(model, ranks, {WholeEngine(model)});
  const Plan plan = RequireArrives(job);
  std::vector<Index> slices;
  for (const Move& move : AllMoves(plan)) {
    if (job.tensor(move.tensor).name == key) slices.push_back(move.box.lo());
  }
  CHECK(slices == std::vector<Index>{{0, 0}, {4, 0}, {8, 0}, {12, 0}});
}

TEST_CASE("experts that do not spread over their ranks are refused", "[frameworks]") {
  CHECK(Reasons(MustModel(SmallMoe()), FsdpLayout{.shard = 8, .ep = 3}) ==
        Texts{"ep is 3, want one that divides shard (8)",
              "ep is 3, want one that divides the number of experts (8)"});
  CHECK(Reasons(MustModel(SmallQwen3()), FsdpLayout{.shard = 8, .ep = 2}) ==
        Texts{"ep is 2, want 1: the model has no experts"});
}

}  // namespace
}  // namespace wb::test
