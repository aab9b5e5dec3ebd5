#include "planner/frameworks/pipeline_stages.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "planner/frameworks/megatron_layout.h"
#include "planner/frameworks/vllm_layout.h"
#include "planner/solve/planner.h"
#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

using Layers = std::vector<std::int64_t>;

PipelineStages MustSplit(const PipelineSplit& split, std::int64_t layers) {
  const std::variant<PipelineStages, Refusals> stages = SplitLayers(split, layers);
  if (const auto* refusals = std::get_if<Refusals>(&stages)) FAIL(refusals->front().text);
  return std::get<PipelineStages>(stages);
}

std::string RefusedSplit(const PipelineSplit& split, std::int64_t layers) {
  const std::variant<PipelineStages, Refusals> stages = SplitLayers(split, layers);
  if (!std::holds_alternative<Refusals>(stages)) return "";
  return std::get<Refusals>(stages).front().text;
}

std::vector<Layers> LayersOf(const PipelineStages& stages) {
  std::vector<Layers> layers;
  for (const std::vector<LayerRange>& stage : stages) {
    Layers& of_stage = layers.emplace_back();
    for (const LayerRange& range : stage) {
      for (std::int64_t i = 0; i < range.count; ++i) of_stage.push_back(range.first + i);
    }
  }
  return layers;
}

Layers Sizes(const PipelineStages& stages) {
  Layers sizes;
  for (const Layers& stage : LayersOf(stages)) {
    sizes.push_back(static_cast<std::int64_t>(stage.size()));
  }
  return sizes;
}

// Each layer is on one stage, in order: the law of every split.
bool CoverAll(const PipelineStages& stages, std::int64_t layers) {
  std::int64_t next = 0;
  for (const Layers& stage : LayersOf(stages)) {
    for (const std::int64_t layer : stage) {
      if (layer != next++) return false;
    }
  }
  return next == layers;
}

TEST_CASE("with virtual stages and a shorter last stage each has its own layers",
          "[field][case-9][frameworks]") {
  const PipelineSplit split{.pp = 4, .virtual_stages = 2, .last_stage_layers = 2, .layout = ""};
  const PipelineStages stages = MustSplit(split, 14);
  CHECK(LayersOf(stages) ==
        std::vector<Layers>{{0, 1, 7, 8}, {2, 3, 9, 10}, {4, 5, 11, 12}, {6, 13}});

  auto config = SmallQwen3();
  config["num_hidden_layers"] = 14;
  const ModelTensors model = MustModel(config);
  const RankLayouts ranks = MustLayOut(model, MegatronLayout{.ranks = 4, .pipeline = split});
  const std::string norm = "decoder.layers.1.self_attention.q_layernorm.weight";
  CHECK(PiecesOf(model, ranks[2], "model1." + norm) ==
        std::vector<std::string>{"model.layers.12.self_attn.q_norm.weight [0]..[8] at [0]"});
  for (const Tensor& tensor : model.tensors()) CHECK(Holders(model, ranks, tensor.name) == 1);
}

TEST_CASE("whatever the numbers of layers and stages, no layer is lost or held twice",
          "[field][case-12][frameworks]") {
  for (std::int64_t layers = 1; layers <= 64; ++layers) {
    for (std::int64_t pp = 1; pp <= 16; ++pp) {
      const bool covered = CoverAll(VllmStages(layers, pp), layers);
      if (!covered) FAIL(layers << " layers over " << pp << " stages of vLLM");
      const auto even = SplitLayers({.pp = pp, .layout = ""}, layers);
      CHECK(std::holds_alternative<PipelineStages>(even) == (layers % pp == 0));
      if (const auto* stages = std::get_if<PipelineStages>(&even)) CHECK(CoverAll(*stages, layers));
    }
  }
  CHECK(Sizes(StagesOf({4, 3, 3})) == Layers{4, 3, 3});
  CHECK(CoverAll(StagesOf({4, 3, 3}), 10));
  CHECK(Sizes(VllmStages(10, 3)) == Layers{3, 4, 3});  // as vLLM spares its last stage
}

TEST_CASE("a stage without layers is a rank without tensors, and the others have all",
          "[field][case-12][frameworks]") {
  auto config = SmallQwen3();
  config["num_hidden_layers"] = 3;
  const ModelTensors model = MustModel(config);
  MegatronLayout megatron{.ranks = 4, .pipeline = {.pp = 4, .layout = "Et|t||tL"}};
  const RankLayouts ranks = MustLayOut(model, megatron);
  CHECK(ranks[2].params.empty());
  CHECK(ranks[2].pieces.empty());
  for (const Tensor& tensor : model.tensors()) CHECK(Holders(model, ranks, tensor.name) == 1);
  const RankLayouts engine = MustLayOut(model, VllmLayout{.tp = 2, .pp_layers = {}});
  const std::variant<Plan, Refusals> plan = Solve(JobOf(model, ranks, {engine}));
  REQUIRE(std::holds_alternative<Plan>(plan));
  CHECK(std::get<Plan>(plan).unused.empty());
}

TEST_CASE("first and last stages have as many layers as they are given", "[frameworks]") {
  CHECK(Sizes(MustSplit({.pp = 8, .last_stage_layers = 5, .layout = ""}, 61)) ==
        Layers{8, 8, 8, 8, 8, 8, 8, 5});
  CHECK(Sizes(MustSplit({.pp = 4, .last_stage_layers = 22, .layout = ""}, 94)) ==
        Layers{24, 24, 24, 22});
  CHECK(Sizes(MustSplit({.pp = 4, .first_stage_layers = 1, .last_stage_layers = 3, .layout = ""},
                        10)) == Layers{1, 3, 3, 3});
  CHECK(LayersOf(MustSplit({.pp = 2, .virtual_stages = 2, .layout = ""}, 8)) ==
        std::vector<Layers>{{0, 1, 4, 5}, {2, 3, 6, 7}});
}

TEST_CASE("an explicit layout is read as Megatron reads it", "[frameworks]") {
  // DeepSeek-V3 without its layer for multi-token prediction: PP 16, VPP 2.
  const PipelineStages stages = MustSplit({.pp = 16, .layout = "Et*3|(tt|)*29,|L"}, 61);
  CHECK(LayersOf(stages)[0] == Layers{0, 1, 2, 33, 34});
  CHECK(LayersOf(stages)[14] == Layers{29, 30});
  CHECK(LayersOf(stages)[15] == Layers{31, 32});
  CHECK(LayersOf(MustSplit({.pp = 2, .layout = "E|t(t|t)*2L"}, 5)).size() == 2);
}

TEST_CASE("layers that do not divide over the stages are refused with the numbers",
          "[frameworks]") {
  CHECK(RefusedSplit({.pp = 8, .layout = ""}, 61) ==
        "pp is 8, which leaves 61 of num_hidden_layers (61) for 8 even stages; want them to "
        "divide, or first_stage_layers, last_stage_layers or pipeline_layout");
  CHECK(RefusedSplit({.pp = 4, .last_stage_layers = 5, .layout = ""}, 10) ==
        "pp is 4, which leaves 5 of num_hidden_layers (10) for 3 even stages beside first_ and "
        "last_stage_layers; want them to divide, or first_stage_layers, last_stage_layers or "
        "pipeline_layout");
  CHECK(RefusedSplit({.pp = 1, .first_stage_layers = 2, .last_stage_layers = 2, .layout = ""}, 4)
            .rfind("pp is 1", 0) == 0);
  CHECK(RefusedSplit({.pp = 2, .virtual_stages = 3, .layout = ""}, 8) ==
        "virtual_stages is 3, want one that divides the layers of stage 0 (4)");
  CHECK(RefusedSplit({.pp = 1, .virtual_stages = 2, .layout = ""}, 8) ==
        "virtual_stages is 2, want 1 where pp is 1: they are of a pipeline of several ranks");
  CHECK(RefusedSplit({.pp = 1, .layout = "Et|tL"}, 2) ==
        "pipeline_layout is \"Et|tL\", which has 2 stages, want 1 where pp is 1");
  CHECK(RefusedSplit({.pp = 65'536, .virtual_stages = 2, .layout = ""}, 8) ==
        "virtual_stages is 2, want at most 65536 in all 65536 stages");
}

TEST_CASE("a layout that is none, or of another model, is refused with the reason",
          "[frameworks]") {
  const auto refused = [](const std::string& layout) {
    return RefusedSplit({.pp = 2, .layout = layout}, 4);
  };
  const std::string none = "want repetitions as (tt|)*2 or t*3, and not too many";
  CHECK(refused("Ett|ttL").empty());
  CHECK(refused("Ett|tL") ==
        "pipeline_layout is \"Ett|tL\", which has 3 layers, want num_hidden_layers (4)");
  CHECK(refused("Ett|ttmL") ==
        "pipeline_layout is \"Ett|ttmL\", which has 'm', want E, t, L and | alone");
  CHECK(refused("ttE|ttL") ==
        "pipeline_layout is \"ttE|ttL\", want E first, L last, each once, and t between");
  CHECK(refused("Et|t|ttL") ==
        "pipeline_layout is \"Et|t|ttL\", which has 3 stages, want a multiple of pp (2)");
  CHECK(refused("E(tt|ttL") == "pipeline_layout is \"E(tt|ttL\", " + none);
  CHECK(refused("E((t)*2|ttL") ==
        "pipeline_layout is \"E((t)*2|ttL\", which has '(', want E, t, L and | alone");
  CHECK(refused("Et*99999999999999999999|L") ==
        "pipeline_layout is \"Et*99999999999999999999|L\", " + none);
  CHECK(refused("E(t*1000000)*1000000|L") ==
        "pipeline_layout is \"E(t*1000000)*1000000|L\", " + none);
  CHECK(RefusedSplit({.pp = 2, .last_stage_layers = 2, .layout = "Ett|ttL"}, 4) ==
        "pipeline_layout is \"Ett|ttL\", want it alone: it says virtual_stages, first_ and "
        "last_stage_layers itself");
}

}  // namespace
}  // namespace wb::test
