// The figures of the four deployments, in bytes, tensors and boxes, against the published ones.

#include "tests/planner/frameworks/canonical.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/planner/frameworks/models.h"
#include "tests/support/catch.h"

namespace wb::test {
namespace {

double Gigabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

struct Figures {
  Canonical deployment;
  // Of a rank: the least and the most.
  double trainer_gb_least;
  double trainer_gb;
  std::size_t trainer_params_least;
  std::size_t trainer_params;
  double rollout_gb;
  std::size_t rollout_params;
  double engine_over_model;
  std::map<std::int64_t, double> replicas_gb;  // of the model, by trainers that hold it
  std::size_t boxes;                           // of an engine
  double ingress_ms;                           // at 50 GB/s
  // Of an engine.
  double contiguous_gb;
  double source_strided_gb;
  double destination_strided_gb;
};

std::vector<Figures> AllFigures() {
  return {{Moonlight(),
           5.199,
           5.199,
           714,
           714,
           4.052,
           350,
           1.016,
           {{1, 28.79}, {4, 3.06}, {8, 0.07}},
           7'592,
           81.0,
           31.8,
           0.57,
           0},
          {Qwen30B(),
           8.038,
           8.038,
           1875,
           1875,
           7.681,
           435,
           1.006,
           {{2, 57.98}, {4, 3.06}, {16, 0.03}},
           21'918,
           153.6,
           60.6,
           0.81,
           0},
          {Qwen235B(),
           7.763,
           8.440,
           508,
           553,
           14.963,
           849,
           1.018,
           {{1, 454.19}, {4, 15.89}, {16, 0.10}},
           63'270,
           299.3,
           472.5,
           6.3,
           0},
          {KimiK2(),
           5.920,
           9.002,
           187,
           296,
           70.352,
           853,
           1.097,
           {{1, 2029.4}, {4, 21.27}, {32, 2.18}},
           103'072,
           1407,
           2183.7,
           1.8,
           65.8}};
}

// Whether the part's elements follow each other where the piece puts them.
bool Contiguous(const Piece& piece, const Box& part) {
  std::int64_t next = 1;
  for (int d = part.ndim() - 1; d >= 0; --d) {
    if (part.extent(d) > 1 && piece.strides[static_cast<std::size_t>(d)] != next) return false;
    next *= part.extent(d);
  }
  return true;
}

struct Boxes {
  std::size_t count = 0;
  std::uint64_t contiguous = 0;
  std::uint64_t source_strided = 0;
  std::uint64_t destination_strided = 0;  // the source is not
};

// What an engine gets: each of its pieces, cut where the trainers' differ.
Boxes Cut(const ModelTensors& model, const RankLayouts& trainer, const RankLayouts& engine) {
  std::vector<std::vector<const Piece*>> sources(model.tensors().size());
  std::vector<std::set<Box>> known(model.tensors().size());
  for (const Layout& rank : trainer) {
    for (const Piece& piece : rank.pieces) {
      if (!known[piece.tensor.value()].insert(piece.box).second) continue;
      sources[piece.tensor.value()].push_back(&piece);
    }
  }
  Boxes boxes;
  for (const Layout& rank : engine) {
    for (const Piece& piece : rank.pieces) {
      for (const Piece* source : sources[piece.tensor.value()]) {
        const std::optional<Box> part = Intersect(source->box, piece.box);
        if (!part.has_value()) continue;
        ++boxes.count;
        const auto bytes = static_cast<std::uint64_t>(part->elements() *
                                                      DtypeBytes(model.tensor(piece.tensor).dtype));
        const bool gathered = !Contiguous(*source, *part);
        const bool scattered = !gathered && !Contiguous(piece, *part);
        (gathered    ? boxes.source_strided
         : scattered ? boxes.destination_strided
                     : boxes.contiguous) += bytes;
      }
    }
  }
  return boxes;
}

TEST_CASE("the four deployments hold the bytes, tensors and boxes that are known of them",
          "[frameworks]") {
  const Figures figures = GENERATE(from_range(AllFigures()));
  INFO(figures.deployment.config);
  const ModelTensors model = MustModel(ExampleConfig(figures.deployment.config));
  const RankLayouts trainer = MustLayOut(model, figures.deployment.trainer);
  const RankLayouts engine = MustLayOut(model, figures.deployment.engine);

  const auto fewer_bytes = [](const Layout& a, const Layout& b) {
    return ParamBytes(a) < ParamBytes(b);
  };
  const auto fewer_params = [](const Layout& a, const Layout& b) {
    return a.params.size() < b.params.size();
  };
  const auto [least, most] = std::minmax_element(trainer.begin(), trainer.end(), fewer_bytes);
  CHECK(Gigabytes(ParamBytes(*least)) == Approx(figures.trainer_gb_least).margin(0.0006));
  CHECK(Gigabytes(ParamBytes(*most)) == Approx(figures.trainer_gb).margin(0.0006));
  const auto [few, many] = std::minmax_element(trainer.begin(), trainer.end(), fewer_params);
  CHECK(few->params.size() == figures.trainer_params_least);
  CHECK(many->params.size() == figures.trainer_params);

  std::uint64_t engine_bytes = 0;
  for (const Layout& rank : engine) {
    CHECK(Gigabytes(ParamBytes(rank)) == Approx(figures.rollout_gb).margin(0.0006));
    CHECK(rank.params.size() == figures.rollout_params);
    engine_bytes += PieceBytes(model, rank);
    CHECK(Gigabytes(PieceBytes(model, rank)) / 50 * 1000 ==
          Approx(figures.ingress_ms).margin(0.06).epsilon(0.0001));
  }
  CHECK(static_cast<double>(engine_bytes) / static_cast<double>(ModelBytes(model)) ==
        Approx(figures.engine_over_model).margin(0.0006));

  const std::map<std::int64_t, std::uint64_t> held = BytesByHolders(model, trainer);
  REQUIRE(held.size() == figures.replicas_gb.size());
  for (const auto& [ranks, bytes] : held) {
    INFO(ranks << " ranks");
    REQUIRE(figures.replicas_gb.count(ranks) == 1);
    CHECK(Gigabytes(bytes) == Approx(figures.replicas_gb.at(ranks)).margin(0.0051).epsilon(2e-5));
  }

  const Boxes boxes = Cut(model, trainer, engine);
  CHECK(boxes.count == figures.boxes);
  CHECK(Gigabytes(boxes.contiguous) == Approx(figures.contiguous_gb).margin(0.051));
  CHECK(Gigabytes(boxes.source_strided) == Approx(figures.source_strided_gb).margin(0.051));
  CHECK(Gigabytes(boxes.destination_strided) ==
        Approx(figures.destination_strided_gb).margin(0.051));
}

TEST_CASE("Qwen3-30B served with tensor-parallel experts is strided in 101 M runs",
          "[frameworks]") {
  const ModelTensors model = MustModel(ExampleConfig("qwen3-30b-a3b"));
  const RankLayouts trainer = MustLayOut(model, Qwen30B().trainer);
  SglangLayout sglang = Qwen30B().engine;
  sglang.ep = 1;
  const RankLayouts engine = MustLayOut(model, sglang);
  CHECK(ParamNamed(engine[0], "model.layers.0.mlp.experts.w13_weight").shape ==
        Index{128, 192, 2048});
  CHECK(Gigabytes(Cut(model, trainer, engine).source_strided) == Approx(20.1).margin(0.051));
  std::int64_t runs = 0;
  for (const Layout& rank : engine) {
    for (const Piece& piece : rank.pieces) {
      const std::string& name = model.tensor(piece.tensor).name;
      const bool columns = name.find("down_proj") != name.npos || name.find("o_proj") != name.npos;
      if (columns) runs += piece.box.extent(0);
    }
  }
  CHECK(static_cast<double>(runs) / 1e6 == Approx(101).margin(0.5));
}

struct Shape {
  const char* param;
  Index shape;
};

void CheckShapes(const Layout& rank, const std::vector<Shape>& shapes) {
  for (const auto& [param, shape] : shapes) {
    INFO(param);
    CHECK(ParamNamed(rank, param).shape == shape);
  }
}

TEST_CASE("rank 1 of each deployment has the shapes that its framework has", "[frameworks]") {
  const auto ranks = [](const Canonical& deployment, auto framework) {
    const ModelTensors model = MustModel(ExampleConfig(deployment.config), 2);
    return MustLayOut(model, framework)[1];
  };
  const Canonical moon = Moonlight();
  CheckShapes(ranks(moon, moon.trainer),
              {{"embedding.word_embeddings.weight", {81920, 2048}},
               {"decoder.layers.1.self_attention.linear_q_proj.weight", {1536, 2048}},
               {"decoder.layers.1.self_attention.linear_kv_down_proj.weight", {576, 2048}},
               {"decoder.layers.1.self_attention.linear_kv_up_proj.weight", {2048, 512}},
               {"decoder.layers.1.self_attention.linear_proj.weight", {2048, 1024}},
               {"decoder.layers.0.mlp.linear_fc1.weight", {11264, 2048}},
               {"decoder.layers.0.mlp.linear_fc2.weight", {2048, 5632}},
               {"decoder.layers.1.mlp.experts.linear_fc1.weight7", {2816, 2048}},
               {"decoder.layers.1.mlp.experts.linear_fc2.weight7", {2048, 1408}},
               {"decoder.layers.1.mlp.shared_experts.linear_fc1.weight", {2816, 2048}},
               {"decoder.layers.1.mlp.shared_experts.linear_fc2.weight", {2048, 1408}},
               {"decoder.layers.1.mlp.router.weight", {64, 2048}},
               {"decoder.layers.1.mlp.router.expert_bias", {64}}});
  CheckShapes(ranks(moon, moon.engine),
              {{"lm_head.weight", {20480, 2048}},
               {"model.layers.1.self_attn.q_proj.weight", {384, 2048}},
               {"model.layers.1.self_attn.kv_a_proj_with_mqa.weight", {576, 2048}},
               {"model.layers.1.self_attn.kv_b_proj.weight", {512, 512}},
               {"model.layers.1.self_attn.o_proj.weight", {2048, 256}},
               {"model.layers.0.mlp.gate_up_proj.weight", {2816, 2048}},
               {"model.layers.0.mlp.down_proj.weight", {2048, 1408}},
               {"model.layers.1.mlp.experts.w13_weight", {8, 2816, 2048}},
               {"model.layers.1.mlp.experts.w2_weight", {8, 2048, 1408}},
               {"model.layers.1.mlp.shared_experts.gate_up_proj.weight", {704, 2048}},
               {"model.layers.1.mlp.shared_experts.down_proj.weight", {2048, 352}}});
  const Canonical qwen = Qwen30B();
  CheckShapes(ranks(qwen, qwen.trainer),
              {{"output_layer.weight", {38016, 2048}},
               {"decoder.layers.1.self_attention.linear_qkv.weight", {1280, 2048}},
               {"decoder.layers.1.self_attention.linear_proj.weight", {2048, 1024}},
               {"decoder.layers.1.mlp.experts.linear_fc1.weight15", {1536, 2048}}});
  CheckShapes(ranks(qwen, qwen.engine),
              {{"model.embed_tokens.weight", {18992, 2048}},
               {"model.layers.1.self_attn.qkv_proj.weight", {768, 2048}},
               {"model.layers.1.mlp.experts.w2_weight", {16, 2048, 768}}});
  const Canonical big = Qwen235B();
  CheckShapes(ranks(big, big.trainer),
              {{"embedding.word_embeddings.weight", {38016, 4096}},
               {"decoder.layers.1.self_attention.linear_qkv.weight", {2304, 4096}},
               {"decoder.layers.1.mlp.experts.linear_fc2.weight7", {4096, 1536}}});
  CheckShapes(ranks(big, big.engine), {{"model.embed_tokens.weight", {4748, 4096}},
                                       {"model.layers.1.self_attn.qkv_proj.weight", {512, 4096}},
                                       {"model.layers.1.self_attn.o_proj.weight", {4096, 256}},
                                       {"model.layers.1.mlp.experts.w13_weight", {4, 3072, 4096}}});
  const Canonical kimi = KimiK2();
  CheckShapes(ranks(kimi, kimi.trainer),
              {{"embedding.word_embeddings.weight", {20480, 7168}},
               {"decoder.layers.1.self_attention.linear_q_down_proj.weight", {1536, 7168}},
               {"decoder.layers.1.self_attention.linear_q_up_proj.weight", {1536, 1536}},
               {"decoder.layers.0.mlp.linear_fc1.weight", {4608, 7168}},
               {"decoder.layers.1.mlp.shared_experts.linear_fc1.weight", {512, 7168}}});
  CheckShapes(ranks(kimi, kimi.engine),
              {{"lm_head.weight", {40960, 7168}},
               {"model.layers.1.self_attn.fused_qkv_a_proj_with_mqa.weight", {2112, 7168}},
               {"model.layers.1.self_attn.q_b_proj.weight", {3072, 1536}},
               {"model.layers.1.self_attn.o_proj.weight", {7168, 2048}},
               {"model.layers.0.mlp.gate_up_proj.weight", {36864, 7168}},
               {"model.layers.1.mlp.experts.w13_weight", {12, 4096, 7168}},
               {"model.layers.1.mlp.shared_experts.gate_up_proj.weight", {128, 7168}}});
}

}  // namespace
}  // namespace wb::test
