#include "proto/door/storage_door.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "proto/convert.h"
#include "tests/proto/layout_cases.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using nlohmann::json;
using test::Accepted;
using test::Kinds;
using test::PairFile;
using test::PieceOf;
using test::Refused;
using test::Texts;
using test::WholeParam;
using Wanted = std::vector<std::string>;

json Bf16(const std::vector<std::int64_t>& shape) {
  return {{"dtype", "BF16"}, {"shape", shape}};
}

json In(json param, const std::string& buffer, std::int64_t offset) {
  param["buffer"] = buffer;
  param["offset_bytes"] = offset;
  return param;
}

// A file whose rollout has these params; the trainer holds nothing.
json Rollout(const json& tensors, const json& params) {
  return PairFile(tensors, json::array(), params);
}

TEST_CASE("Params one after the other in a buffer do not share storage", "[proto]") {
  const json tensors = {{"a", Bf16({4})}, {"b", Bf16({4})}};
  const json a = In(WholeParam("a", "a", {4}), "flat", 0);
  const json b = WholeParam("b", "b", {4});
  CHECK(Accepted(Rollout(tensors, json::array({a, In(b, "flat", 8)})))
            .job.layouts[0]
            .buffers.size() == 1);
  CHECK(Texts(Refused(Rollout(tensors, json::array({a, In(b, "flat", 7)})))) ==
        Wanted{"worker engine/0: params a (tensor a) and b (tensor b) share bytes 7..8 of buffer "
               "flat, want elements of a destination apart"});
}

TEST_CASE("A tied head may be a view of the embedding, whole or in part", "[proto]") {
  json file = Rollout({{"embed", Bf16({6, 4})}},
                      json::array({In(WholeParam("embed", "embed", {6, 4}), "flat", 0),
                                   In(WholeParam("head", "lm_head", {6, 4}), "flat", 0)}));
  file["aliases"] = {{"lm_head", "embed"}};
  CHECK(Accepted(file).job.layouts[0].pieces.size() == 2);
  // Its lower half only, as a smaller view.
  json& head = file["workers"][1]["params"][1];
  head["shape"] = {3, 4};
  head["offset_bytes"] = 24;
  head["pieces"] = json::array({PieceOf("lm_head", {3, 0}, {6, 4}, {0, 0})});
  CHECK(Accepted(file).job.layouts[0].pieces.size() == 2);
  // The same view of the other half: other elements in the same place.
  head["pieces"] = json::array({PieceOf("lm_head", {0, 0}, {3, 4}, {0, 0})});
  CHECK(Kinds(Refused(file)) == Wanted{"overlap"});
}

TEST_CASE("A tied view with other strides is accepted where its elements are the same", "[proto]") {
  // Rows 0 and 1 of "t" by two different maps that agree on row 0; row 1 lies elsewhere.
  json dense = In(WholeParam("dense", "t", {2, 2}), "flat", 0);
  json padded = In(WholeParam("padded", "t", {2, 2}), "flat", 0);
  padded["strides"] = {4, 1};
  const json tensors = {{"t", Bf16({2, 2})}};
  CHECK(Accepted(Rollout(tensors, json::array({dense, padded}))).job.layouts[0].pieces.size() == 2);
  padded["strides"] = {1, 2};  // transposed: two elements change places
  CHECK(Kinds(Refused(Rollout(tensors, json::array({dense, padded})))) == Wanted{"overlap"});
}

TEST_CASE("Columns of one matrix as params of their own are apart", "[proto]") {
  const json tensors = {{"a", Bf16({100, 3})}, {"b", Bf16({100, 5})}};
  json a = In(WholeParam("a", "a", {100, 3}), "fused", 0);
  json b = In(WholeParam("b", "b", {100, 5}), "fused", 6);
  a["strides"] = {8, 1};
  b["strides"] = {8, 1};
  CHECK(Accepted(Rollout(tensors, json::array({a, b}))).job.layouts[0].buffers[0].bytes == 1600);
  b["offset_bytes"] = 4;
  CHECK(Texts(Refused(Rollout(tensors, json::array({a, b})))) ==
        Wanted{"worker engine/0: params a (tensor a) and b (tensor b) share bytes 4..6 of buffer "
               "fused, want elements of a destination apart"});
}

TEST_CASE("Two pieces of a param on one local element are refused, even of one tensor", "[proto]") {
  json param = WholeParam("p", "t", {4, 2});
  param["pieces"] = {PieceOf("t", {0, 0}, {3, 2}, {0, 0}), PieceOf("t", {2, 0}, {4, 2}, {2, 0})};
  CHECK(Texts(Refused(Rollout({{"t", Bf16({4, 2})}}, json::array({param})))) ==
        Wanted{"worker engine/0, param p: box [0,0]..[3,2] of tensor t and box [2,0]..[4,2] of "
               "tensor t cover a common element of it, want each element covered once"});
}

TEST_CASE("Pieces of many params over each other are told once a pair of params", "[proto]") {
  const json tensors = {{"a", Bf16({64, 2})}, {"b", Bf16({64, 2})}, {"c", Bf16({64, 2})}};
  json params = json::array();
  for (const char* name : {"a", "b", "c"}) {
    params.push_back(In(WholeParam(name, name, {64, 2}), "flat", 0));
    params.back()["strides"] = {4, 1};
  }
  CHECK(Kinds(Refused(Rollout(tensors, params))) == Wanted{"overlap", "overlap", "overlap"});
}

TEST_CASE("A local param is not written through another param", "[proto]") {
  json local =
      In({{"name", "rope"}, {"shape", {4}}, {"dtype", "BF16"}, {"local", true}}, "flat", 4);
  const json tensors = {{"t", Bf16({4})}};
  const json written = In(WholeParam("p", "t", {4}), "flat", 0);
  CHECK(Texts(Refused(Rollout(tensors, json::array({written, local})))) ==
        Wanted{"worker engine/0: params p (tensor t) and rope (local) share bytes 4..8 of buffer "
               "flat, want elements of a destination apart"});
  local["offset_bytes"] = 8;
  json other = local;
  other["name"] = "rope2";  // two local params may be one storage
  CHECK(Accepted(Rollout(tensors, json::array({written, local, other}))).job.layouts.size() == 2);
}

TEST_CASE("Bytes that no piece covers may be shared", "[proto]") {
  json padded = In(WholeParam("padded", "a", {8}), "flat", 0);  // elements 4..8 are padding
  padded["pieces"] = json::array({PieceOf("a", {0}, {4}, {0})});
  const json after = In(WholeParam("b", "b", {4}), "flat", 8);
  const json tensors = {{"a", Bf16({4})}, {"b", Bf16({4})}};
  CHECK(Accepted(Rollout(tensors, json::array({padded, after}))).job.layouts[0].pieces.size() == 2);
}

TEST_CASE("A trainer's views may lie on each other", "[proto]") {
  const json tensors = {{"a", Bf16({4})}, {"b", Bf16({4})}};
  const json params = json::array(
      {In(WholeParam("a", "a", {4}), "flat", 0), In(WholeParam("b", "b", {4}), "flat", 2)});
  CHECK(Accepted(PairFile(tensors, params, json::array())).job.layouts[1].pieces.size() == 2);
}

TEST_CASE("Large interleaved and tied params are told apart in few steps", "[proto]") {
  // 4096 experts of a stacked param, each strided; an embedding of 600 million elements and its
  // tied view, cut in two.
  json tensors = {{"embed", Bf16({150'000, 4096})}};
  json stacked = {{"name", "stacked"}, {"shape", {64, 4096, 64}}, {"pieces", json::array()}};
  for (int expert = 0; expert < 4096; ++expert) {
    const std::string name = "expert" + std::to_string(expert);
    tensors[name] = Bf16({64, 64});
    json piece = PieceOf(name, {0, 0}, {64, 64}, {0, expert, 0});
    piece["axes"] = {0, 2};
    stacked["pieces"].push_back(piece);
  }
  json cut = WholeParam("head", "embed", {150'000, 4096});
  cut["pieces"] = {PieceOf("embed", {0, 0}, {70'000, 4096}, {0, 0}),
                   PieceOf("embed", {70'000, 0}, {150'000, 4096}, {70'000, 0})};
  const json params = json::array(
      {stacked, In(WholeParam("embed", "embed", {150'000, 4096}), "flat", 0), In(cut, "flat", 0)});
  CHECK(Accepted(Rollout(tensors, params)).job.layouts[0].pieces.size() == 4099);
}

TEST_CASE("Params that interleave in too many runs are refused with the limit", "[proto]") {
  json even = In(WholeParam("even", "a", {5'000'000}), "flat", 0);
  json odd = In(WholeParam("odd", "b", {5'000'000}), "flat", 2);
  even["strides"] = {2};
  odd["strides"] = {2};
  const json tensors = {{"a", Bf16({5'000'000})}, {"b", Bf16({5'000'000})}};
  CHECK(Texts(Refused(Rollout(tensors, json::array({even, odd})))) ==
        Wanted{"worker engine/0: its pieces interleave in too intricate a way: want their storage "
               "told apart within 4194304 steps"});
}

// What a byte of a destination holds: tensor, its element's row and column, byte of the element.
using Held = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

constexpr std::int64_t kElement = 2;

// A random view of a random box of one of two tensors.
v1::Param RandomParam(std::mt19937_64& rng, int index) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
  };
  v1::Param param;
  param.set_name("p" + std::to_string(index));
  param.set_buffer("flat");
  param.set_dtype(v1::BF16);
  param.set_offset_bytes(draw(0, 30));
  const std::array<std::int64_t, 2> shape = {draw(1, 3), draw(1, 3)};
  param.mutable_shape()->Add(shape.begin(), shape.end());
  const std::int64_t inner = draw(1, 2);
  const std::int64_t outer = shape[1] * inner + draw(0, 3);
  const bool transposed = draw(0, 3) == 0;
  const std::array<std::int64_t, 2> strides =
      transposed ? std::array{inner, shape[0] * inner + draw(0, 3)} : std::array{outer, inner};
  param.mutable_strides()->Add(strides.begin(), strides.end());
  if (draw(0, 9) == 0) {
    param.set_local(true);
    return param;
  }
  v1::Piece& piece = *param.add_pieces();
  piece.set_tensor(draw(0, 3) == 0 ? "b" : "a");
  for (const std::int64_t extent : shape) {
    const std::int64_t lo = draw(0, 1);
    piece.mutable_box()->add_lo(lo);
    piece.mutable_box()->add_hi(lo + extent);
    piece.add_at(0);
  }
  return param;
}

// Whether no byte is written by two params with different contents, found byte by byte.
bool Apart(const v1::Worker& worker) {
  std::map<std::int64_t, std::optional<Held>> bytes;  // nothing held: a local param's
  for (const v1::Param& param : worker.params()) {
    for (std::int64_t i = 0; i < param.shape(0) * param.shape(1) * kElement; ++i) {
      const std::int64_t row = i / kElement / param.shape(1);
      const std::int64_t column = i / kElement % param.shape(1);
      const std::int64_t at = param.offset_bytes() + i % kElement +
                              (row * param.strides(0) + column * param.strides(1)) * kElement;
      std::optional<Held> held;
      if (!param.local()) {
        const v1::Piece& piece = param.pieces(0);
        held =
            Held(piece.tensor(), piece.box().lo(0) + row, piece.box().lo(1) + column, i % kElement);
      }
      const auto [known, added] = bytes.try_emplace(at, held);
      if (!added && known->second != held) return false;
    }
  }
  return true;
}

TEST_CASE("A destination is accepted exactly where no byte has two contents", "[proto][property]") {
  const int round = GENERATE(range(0, 2000));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  v1::Layout wire;
  wire.set_job("random");
  for (const char* name : {"a", "b"}) {
    v1::Tensor& tensor = (*wire.mutable_tensors())[name];
    tensor.set_dtype(v1::BF16);
    tensor.add_shape(4);
    tensor.add_shape(4);
  }
  v1::Worker& worker = *wire.mutable_worker();
  worker.set_role(v1::ROLLOUT);
  worker.set_group("engine");
  worker.set_rank(0);
  worker.set_node("n0");
  for (int i = 0; i < 2 + round % 2; ++i) *worker.add_params() = RandomParam(rng, i);
  INFO(worker.DebugString());
  const auto registration = RegistrationFromProto(wire);
  if (const auto* refusals = std::get_if<Refusals>(&registration)) {
    for (const Refusal& refusal : *refusals) REQUIRE(refusal.kind == "overlap");
  }
  CHECK(std::holds_alternative<Registration>(registration) == Apart(worker));
}

}  // namespace
}  // namespace wb
