// Jobs of generated layouts, planned and run byte by byte.

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/frameworks/fsdp_layout.h"
#include "planner/frameworks/megatron_layout.h"
#include "planner/frameworks/sglang_layout.h"
#include "planner/frameworks/vllm_layout.h"
#include "planner/model/plan_moves.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

MegatronLayout OneTrainer() {
  return {.ranks = 1, .pipeline = {}};
}
SglangLayout OneRank() {
  return {.tp = 1, .physical_to_logical = {}};
}

// The moves of experts' tensors of a kind, by destination.
std::map<std::string, std::vector<std::string>> ExpertMoves(const Job& job,
                                                            const Plan& plan,
                                                            const std::string& kind) {
  std::map<std::string, std::vector<std::string>> moves;
  for (const Move& move : AllMoves(plan)) {
    const std::string& name = job.tensor(move.tensor).name;
    if (name.find(".experts.") == name.npos || name.find(kind) == name.npos) continue;
    moves[job.layout(move.dst).name.ToString()].push_back(name);
  }
  return moves;
}

TEST_CASE("each rank of each engine gets its own experts, and no move more than that",
          "[field][case-22][frameworks]") {
  const ModelTensors model = MustModel(SmallMoe(), 1);
  const RankLayouts engine =
      MustLayOut(model, SglangLayout{.tp = 4, .ep = 4, .physical_to_logical = {}});
  const Job job =
      JobOf(model, MustLayOut(model, MegatronLayout{.ranks = 2, .ep = 2, .pipeline = {}}),
            {engine, engine});
  const auto moves = ExpertMoves(job, RequireArrives(job), "up_proj");
  const auto expert = [](int e) {
    return "model.layers.0.mlp.experts." + std::to_string(e) + ".up_proj.weight";
  };
  REQUIRE(moves.size() == 8);
  for (const auto& [worker, names] : moves) {
    const int rank = worker.back() - '0';
    CHECK(names == std::vector<std::string>{expert(2 * rank), expert(2 * rank + 1)});
  }
}

TEST_CASE("experts of two trainers come together in one stacked param",
          "[field][case-26][frameworks]") {
  const ModelTensors model = MustModel(SmallMixtral(), 1);  // 4 experts
  const RankLayouts engine = MustLayOut(model, OneRank());
  CHECK(ParamNamed(engine[0], "model.layers.0.block_sparse_moe.experts.w13_weight").shape ==
        Index{4, 48, 32});
  RequireArrives(JobOf(
      model, MustLayOut(model, MegatronLayout{.ranks = 2, .ep = 2, .pipeline = {}}), {engine}));
}

TEST_CASE("a tied head moves once, as the embedding that it is", "[field][case-32][frameworks]") {
  auto config = SmallQwen3();
  config["tie_word_embeddings"] = true;
  const ModelTensors model = MustModel(config);
  const MegatronLayout megatron{.ranks = 2, .pipeline = {.pp = 2, .layout = ""}};
  const Job job = JobOf(model, MustLayOut(model, megatron), {MustLayOut(model, OneRank())});
  const Plan plan = RequireArrives(job);
  CHECK(plan.unused.empty());
  std::uint64_t embedding = 0;
  for (const Move& move : AllMoves(plan)) {
    if (job.tensor(move.tensor).name == "model.embed_tokens.weight") embedding += move.bytes;
  }
  CHECK(embedding == 192 * 32 * 2);
}

TEST_CASE("an engine with a tied head on another rank gets the embedding on both",
          "[field][case-33][frameworks]") {
  auto config = SmallQwen3();
  config["tie_word_embeddings"] = true;
  const ModelTensors model = MustModel(config);
  const RankLayouts engine = MustLayOut(model, VllmLayout{.pp = 2, .pp_layers = {}});
  CHECK(HasParam(engine[0], "model.embed_tokens.weight"));
  CHECK(HasParam(engine[1], "model.embed_tokens.weight"));
  RequireArrives(JobOf(model, MustLayOut(model, OneTrainer()), {engine}));
}

TEST_CASE("experts that a trainer keeps transposed arrive as the engine keeps them",
          "[field][case-45][frameworks]") {
  const ModelTensors model = MustModel(SmallMoe(), 1);
  const MegatronLayout megatron{
      .ranks = 4, .ep = 2, .etp = 2, .pipeline = {}, .experts = MegatronExperts::kLegacyGrouped};
  const RankLayouts trainer = MustLayOut(model, megatron);
  CHECK(ParamNamed(trainer[0], "decoder.layers.0.mlp.experts.weight1").shape == Index{4, 32, 12});
  for (const Piece& piece : trainer[3].pieces) {
    const bool expert = model.tensor(piece.tensor).name.find(".experts.") != std::string::npos;
    if (expert) CHECK(piece.axes == Index{2, 1});
  }
  RequireArrives(
      JobOf(model, trainer, {MustLayOut(model, SglangLayout{.tp = 2, .physical_to_logical = {}})}));
}

TEST_CASE("every trainer layout serves every engine layout, every element",
          "[frameworks][property]") {
  auto lite = SmallDeepseek();
  lite["q_lora_rank"] = nullptr;
  const ModelTensors model = MustModel(GENERATE_COPY(SmallDeepseek(), lite, SmallMoe()));
  const std::int64_t layers = model.config().layers;
  const std::vector<RankLayouts> trainers{
      MustLayOut(model, MegatronLayout{.ranks = 8,
                                       .tp = 2,
                                       .cp = 2,
                                       .ep = 4,
                                       .etp = 1,
                                       .pipeline = {.pp = 2,
                                                    .first_stage_layers = 1,
                                                    .last_stage_layers = layers - 1,
                                                    .layout = ""}}),
      MustLayOut(model, MegatronLayout{.ranks = 4,
                                       .tp = 4,
                                       .ep = 2,
                                       .etp = 2,
                                       .pipeline = {},
                                       .experts = MegatronExperts::kSequential}),
      MustLayOut(model, FsdpLayout{.shard = 5}),
      MustLayOut(model, FsdpLayout{.shard = 4, .replicate = 2, .ep = 2})};
  std::vector<RankLayouts> engines{
      MustLayOut(model, SglangLayout{.tp = 4, .ep = 2, .physical_to_logical = {}}),
      MustLayOut(model, SglangLayout{.tp = 4,
                                     .ep = 4,
                                     .dp = 2,
                                     .dense_tp_one = model.config().intermediate > 0,
                                     .physical_to_logical = {}}),
      MustLayOut(model, VllmLayout{.tp = 2, .pp = 2, .dp = 3, .ep = true, .pp_layers = {}}),
      MustLayOut(model, VllmLayout{.tp = 1, .dp = 2, .pp_layers = {}})};
  for (const RankLayouts& trainer : trainers) {
    CHECK(RequireArrives(JobOf(model, trainer, engines)).unused.empty());
  }
}

}  // namespace
}  // namespace wb::test
