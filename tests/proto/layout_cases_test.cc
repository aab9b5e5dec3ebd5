#include "tests/proto/layout_cases.h"

#include <string>
#include <vector>

#include "proto/convert.h"
#include "tests/support/catch.h"

// Cases from the field that the door decides by itself: accepted or refused before any plan.

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

json Tensor(const std::string& dtype, const std::vector<std::int64_t>& shape) {
  return {{"dtype", dtype}, {"shape", shape}};
}

TEST_CASE("A rank left out is refused, never taken for 0", "[proto][field][case-6]") {
  const json tensors = {{"gate_up", Tensor("BF16", {8, 2})}};
  json file =
      PairFile(tensors, json::array({WholeParam("gate_up", "gate_up", {8, 2})}), json::array());
  file["workers"].erase(1);
  for (int rank = 0; rank < 4; ++rank) {
    json param = WholeParam("gate_up", "gate_up", {2, 2});
    param["pieces"] = json::array({PieceOf("gate_up", {2 * rank, 0}, {2 * rank + 2, 2}, {0, 0})});
    file["workers"].push_back({{"role", "ROLLOUT"},
                               {"group", "engine"},
                               {"rank", rank},
                               {"node", "n1"},
                               {"params", json::array({param})}});
  }
  CHECK(Accepted(file).job.layouts.size() == 5);
  file["workers"][3].erase("rank");
  CHECK(Texts(Refused(file)) == Wanted{"workers[3]: rank is required (of group engine)"});
}

TEST_CASE("A rank without layers registers with no tensors", "[proto][field][case-12]") {
  json file = PairFile({{"t", Tensor("BF16", {4})}}, json::array(), json::array());
  const LoadedJob loaded = Accepted(file);
  CHECK(loaded.registrations[0].tensors.empty());
  CHECK(loaded.job.layouts.size() == 2);
}

TEST_CASE("A transpose is accepted exactly where the shape read through axes fits",
          "[proto][field][case-18]") {
  const auto file = [](const std::vector<std::int64_t>& local, const json& axes) {
    json param = WholeParam("w", "w", {2, 3});
    param["shape"] = local;
    if (!axes.is_null()) param["pieces"][0]["axes"] = axes;
    return PairFile({{"w", Tensor("FP32", {2, 3})}}, json::array({WholeParam("w", "w", {2, 3})}),
                    json::array({param}));
  };
  CHECK(Accepted(file({3, 2}, {1, 0})).job.layouts[0].pieces[0].strides == Index{1, 2});
  CHECK(Kinds(Refused(file({3, 2}, nullptr))) == Wanted{"piece"});
  CHECK(Kinds(Refused(file({2, 3}, {1, 0}))) == Wanted{"piece"});
  // A square matrix hides nothing: the axes alone decide where an element lies.
  json square =
      PairFile({{"s", Tensor("FP32", {3, 3})}}, json::array({WholeParam("s", "s", {3, 3})}),
               json::array({WholeParam("s", "s", {3, 3})}));
  square["workers"][1]["params"][0]["pieces"][0]["axes"] = {1, 0};
  const Piece piece = Accepted(square).job.layouts[0].pieces[0];
  CHECK(piece.strides[0] * 1 + piece.strides[1] * 2 == 2 * 3 + 1);  // s[1][2] is d[2][1]
}

TEST_CASE("A range that is reversed, negative or beyond the experts is refused with its field",
          "[proto][field][case-23]") {
  const auto experts = [](std::int64_t start, std::int64_t end) {
    json param = {{"name", "w13"},
                  {"shape", {4, 2}},
                  {"pieces", json::array({PieceOf("experts", {start, 0}, {end, 2}, {0, 0})})}};
    return PairFile({{"experts", Tensor("BF16", {8, 2})}},
                    json::array({WholeParam("experts", "experts", {8, 2})}), json::array({param}));
  };
  const std::string piece = "worker engine/0, param w13, piece 0 of tensor experts: ";
  CHECK(Texts(Refused(experts(5, 3))) ==
        Wanted{piece + "box.lo[0] is 5 and box.hi[0] 3, want lo <= hi"});
  CHECK(Texts(Refused(experts(-1, 3))) == Wanted{piece + "box.lo[0] is -1, want >= 0"});
  CHECK(Texts(Refused(experts(6, 9))) ==
        Wanted{piece + "box.hi[0] is 9, want at most the tensor's extent 8"});
  CHECK(Accepted(experts(3, 3)).job.layouts[0].pieces.empty());  // zero experts
  CHECK(Accepted(experts(4, 8)).job.layouts[0].pieces.size() == 1);
}

// Elements lie where boxes and strides say, or the worker does not join: there is no name for an
// arrangement of which we know nothing.
TEST_CASE("A tensor or param of an opaque physical layout is refused by the field that says so",
          "[proto][field][case-26]") {
  const json tensors = {{"experts", Tensor("BF16", {4, 2, 3})}};
  const json file = PairFile(tensors, json::array({WholeParam("experts", "experts", {4, 2, 3})}),
                             json::array({WholeParam("experts", "experts", {4, 2, 3})}));
  CHECK(Accepted(file).job.layouts.size() == 2);
  json of_tensor = file;
  of_tensor["tensors"]["experts"]["physical_layout"] = "mxfp4-swizzled";
  REQUIRE(Refused(of_tensor).size() == 1);
  CHECK(Refused(of_tensor)[0].text.find("tensors.experts.physical_layout is no field of Tensor") !=
        std::string::npos);
  json of_param = file;
  of_param["workers"][1]["params"][0]["physical_layout"] = "mxfp4-swizzled";
  REQUIRE(Refused(of_param).size() == 1);
  CHECK(Refused(of_param)[0].text.find(
            "workers[1].params[0].physical_layout is no field of Param") != std::string::npos);
}

TEST_CASE("An alias is one tensor, and covers both names", "[proto][field][case-32][case-33]") {
  json file = PairFile(
      {{"embed", Tensor("BF16", {8, 2})}, {"mtp.lm_head", Tensor("BF16", {8, 2})}},
      json::array({WholeParam("embed", "embed", {8, 2}), WholeParam("head", "lm_head", {8, 2}),
                   WholeParam("mtp", "mtp.lm_head", {8, 2})}),
      json::array(
          {WholeParam("embed", "embed", {8, 2}), WholeParam("lm_head", "lm_head", {8, 2})}));
  file["aliases"] = {{"lm_head", "embed"}};
  const Job job = Accepted(file).job;
  REQUIRE(job.tensors.size() == 2);  // the alias is none of its own; mtp.lm_head is
  const Layout& engine = job.layouts[0];
  REQUIRE(engine.pieces.size() == 2);
  CHECK(engine.pieces[0].tensor == engine.pieces[1].tensor);
  CHECK(engine.pieces[0].buffer != engine.pieces[1].buffer);  // separate memory for both
}

TEST_CASE("A buffer that nothing fills is refused unless it is local", "[proto][field][case-38]") {
  json file =
      PairFile({{"t", Tensor("BF16", {4})}}, json::array({WholeParam("t", "t", {4})}),
               json::array({WholeParam("t", "t", {4}), {{"name", "rope"}, {"shape", {4}}}}));
  CHECK(Texts(Refused(file)) == Wanted{"worker engine/0, param rope: it has no pieces, so nothing "
                                       "would ever fill it, want pieces or local: true"});
  file["workers"][1]["params"][1]["local"] = true;
  CHECK(Accepted(file).job.layouts[0].params[1].local);
}

TEST_CASE("Empty shards register without error", "[proto][field][case-42]") {
  json empty = WholeParam("t", "t", {0});
  empty["pieces"] = json::array({PieceOf("t", {2}, {2}, {0})});
  json file =
      PairFile({{"t", Tensor("BF16", {2})}}, json::array({WholeParam("t", "t", {2}), empty}),
               json::array({WholeParam("t", "t", {2})}));
  file["workers"][0]["params"][1]["name"] = "empty";
  const Job job = Accepted(file).job;
  CHECK(job.layouts[1].pieces.size() == 1);
  CHECK(job.layouts[1].params[1].shape == Index{0});
  CHECK(job.layouts[1].buffers[1].bytes == 0);
}

TEST_CASE("A destination of another dtype is refused, naming both", "[proto][field][case-46]") {
  json bias = WholeParam("bias", "bias", {3});
  json file = PairFile({{"bias", Tensor("FP32", {3})}}, json::array({bias}), json::array({bias}));
  CHECK(Accepted(file).job.layouts[0].params[0].dtype == Dtype::kFp32);
  file["workers"][1]["params"][0]["dtype"] = "BF16";
  CHECK(Texts(Refused(file)) ==
        Wanted{"worker engine/0, param bias, piece 0 of tensor bias: the tensor is FP32 and the "
               "param is BF16, want the same: nothing is converted"});
}

TEST_CASE("Tensors of two dtypes in one fused param are refused", "[proto][field][case-51]") {
  const auto file = [](const std::string& source) {
    const json fused = {{"name", "fused"},
                        {"shape", {256, 64}},
                        {"pieces",
                         {PieceOf("other", {0, 0}, {128, 64}, {128, 0}),
                          PieceOf("wk", {0, 0}, {128, 64}, {0, 0})}}};
    return PairFile({{"wk", Tensor(source, {128, 64})}, {"other", Tensor("BF16", {128, 64})}},
                    json::array({WholeParam("wk", "wk", {128, 64})}), json::array({fused}));
  };
  const Refusals refusals = Refused(file("FP8_E4M3"));
  CHECK(Texts(refusals) ==
        Wanted{"worker engine/0, param fused, piece 1 of tensor wk: the tensor is FP8_E4M3 and the "
               "param's first tensor other is BF16, want the same: nothing is converted"});
  CHECK(refusals[0].kind == "dtype");
  CHECK(Accepted(file("BF16")).job.layouts[0].pieces.size() == 2);
}

TEST_CASE("Elements of any size may start at any byte", "[proto][field][case-55]") {
  const auto at = [](const std::string& name, std::int64_t extent, std::int64_t offset) {
    json param = WholeParam(name, name, {extent});
    param["buffer"] = "bucket";
    param["offset_bytes"] = offset;
    return param;
  };
  const json params =
      json::array({at("half", 3, 0), at("float", 1, 6), at("bytes", 5, 10), at("longs", 2, 15)});
  const Job job = Accepted(PairFile({{"half", Tensor("FP16", {3})},
                                     {"float", Tensor("FP32", {1})},
                                     {"bytes", Tensor("UINT8", {5})},
                                     {"longs", Tensor("INT64", {2})}},
                                    params, params))
                      .job;
  CHECK(job.layouts[0].buffers == SharedList<Buffer>{{"bucket", 31}});
}

TEST_CASE("Two names on one storage are fine, a third over half of it is not",
          "[proto][field][case-146]") {
  const auto at = [](const std::string& name, const std::string& tensor, std::int64_t offset) {
    json param = WholeParam(name, tensor, {4});
    param["buffer"] = "storage";
    param["offset_bytes"] = offset;
    return param;
  };
  json file = PairFile({{"a", Tensor("BF16", {4})}, {"c", Tensor("BF16", {4})}},
                       json::array({WholeParam("a", "a", {4}), WholeParam("c", "c", {4})}),
                       json::array({at("A", "a", 0), at("B", "b", 0)}));
  file["aliases"] = {{"b", "a"}};
  CHECK(Accepted(file).job.layouts[0].pieces.size() == 2);
  file["workers"][1]["params"].push_back(at("C", "c", 4));
  CHECK(Texts(Refused(file)) ==
        Wanted{"worker engine/0: params A (tensor a) and C (tensor c) share bytes 4..8 of buffer "
               "storage, want elements of a destination apart"});
}

}  // namespace
}  // namespace wb
