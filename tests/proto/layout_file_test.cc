#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <variant>

#include "proto/convert.h"
#include "tests/proto/layout_cases.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using nlohmann::json;
using test::Accepted;
using test::AcceptedText;
using test::GqaFile;
using test::Kinds;
using test::Refused;
using test::RefusedText;
using test::Texts;
using Wanted = std::vector<std::string>;

// The texts of the design's example with one value changed; null takes the value out.
Wanted Changed(const std::string& pointer, const json& value) {
  json file = GqaFile();
  const json::json_pointer at(pointer);
  if (value.is_null()) {
    file[at.parent_pointer()].erase(at.back());
  } else {
    file[at] = value;
  }
  return Texts(Refused(file));
}

const std::string kFused = "worker policy/0, param linear_qkv.weight";

TEST_CASE("The complete example of the design is a job", "[proto]") {
  const LoadedJob loaded = Accepted(GqaFile());
  const Job& job = loaded.job;
  CHECK(job.name == "gqa");
  REQUIRE(job.tensors.size() == 3);
  CHECK(job.tensors[0] == Tensor{"k", Dtype::kBf16, {4, 2}, false});
  CHECK(job.tensors[2] == Tensor{"w", Dtype::kFp32, {2, 3}, false});
  REQUIRE(job.layouts.size() == 2);
  const Layout& engine = job.layouts[0];
  CHECK(engine.role == Role::kRollout);
  CHECK(engine.name.ToString() == "engine0/0");
  CHECK(engine.node == "n1");
  REQUIRE(engine.params.size() == 2);
  CHECK(engine.params[0].dtype == Dtype::kBf16);  // its tensors'
  CHECK(engine.params[0].strides == Index{2, 1});
  CHECK(engine.buffers == SharedList<Buffer>{{"qkv", 80}, {"w", 28}});
}

TEST_CASE("Pieces are placed through at, strides and axes", "[proto]") {
  const Job job = Accepted(GqaFile()).job;
  const Layout& policy = job.layouts[1];
  REQUIRE(policy.pieces.size() == 5);
  // Ordered by tensor and box: k, k, q, q, w.
  CHECK(policy.pieces[1].box == *Box::Create({2, 0}, {4, 2}));
  CHECK(policy.pieces[1].offset_bytes == 18 * 2 * 2);
  CHECK(policy.pieces[3].offset_bytes == 10 * 2 * 2);
  const Piece& transposed = policy.pieces[4];
  CHECK(transposed.tensor == TensorId(2));
  CHECK(transposed.axes == Index{1, 0});
  CHECK(transposed.strides == Index{1, 2});
  CHECK(policy.buffers[1].bytes == 24);
  const Piece& padded = job.layouts[0].pieces[2];
  CHECK(padded.strides == Index{4, 1});
}

TEST_CASE("A file and its workers' wire layouts give equal registrations", "[proto]") {
  for (const char* name : {"tiny-qwen3-moe.json", "tiny-deepseek-moe.json"}) {
    INFO(name);
    const std::ifstream file(std::string(WB_EXAMPLES_DIR) + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    const LoadedJob loaded = AcceptedText(text.str());
    REQUIRE(loaded.wire.size() == loaded.registrations.size());
    for (std::size_t i = 0; i < loaded.wire.size(); ++i) {
      const auto again = RegistrationFromProto(loaded.wire[i]);
      CHECK(std::get<Registration>(again) == loaded.registrations[i]);
      CHECK(loaded.registrations[i].layout.name == loaded.job.layouts[i].name);
      const auto round = RegistrationFromProto(ToProto(loaded.registrations[i]));
      CHECK(std::get<Registration>(round) == loaded.registrations[i]);
    }
    CHECK(std::get<Job>(MakeJob(loaded.registrations)) == loaded.job);
  }
}

TEST_CASE("Numbers may be given as strings, and fields by their JSON names", "[proto]") {
  json file = GqaFile();
  file["tensors"]["q"]["shape"] = {"16", "2"};
  file["workers"][0]["params"][0]["offsetBytes"] = "6";
  const Job job = Accepted(file).job;
  CHECK(job.layouts[1].params[0].offset_bytes == 6);
  CHECK(job.layouts[1].buffers[0].bytes == 86);
}

TEST_CASE("A text that is no layout file is refused as JSON", "[proto]") {
  for (const char* text : {"", "[]", "3", "\"x\"", "{\"workers\": 3}", "{\"job\": []}",
                           "{\"workers\": [[]]}", "{\"tensors\": []}", "{\"job\": 1.5, }"}) {
    INFO(text);
    CHECK(Kinds(RefusedText(text)) == Wanted{"json"});
  }
}

TEST_CASE("An unknown field is refused by name", "[proto]") {
  json file = GqaFile();
  file["workers"][0]["params"][0]["offset"] = 3;
  const Wanted texts = Texts(Refused(file));
  REQUIRE(texts.size() == 1);
  CHECK(texts[0].find("offset") != std::string::npos);
  CHECK(texts[0].find("workers[0]") != std::string::npos);
}

TEST_CASE("A value of the wrong type is refused", "[proto]") {
  for (const auto& [pointer, value] :
       std::vector<std::pair<std::string, json>>{{"/workers/0/rank", 1.5},
                                                 {"/workers/0/rank", "x"},
                                                 {"/workers/0/rank", 4294967296},
                                                 {"/tensors/q/shape", {16.5, 2}},
                                                 {"/tensors/q/shape/0", 1e30},
                                                 {"/workers/0/params/0/pieces/0/axes", {"a"}},
                                                 {"/workers/0/params/0/local", "maybe"},
                                                 {"/workers/0/group", {1}}}) {
    INFO(pointer << " " << value.dump());
    json file = GqaFile();
    file[json::json_pointer(pointer)] = value;
    CHECK(Kinds(Refused(file)) == Wanted{"json"});
  }
}

TEST_CASE("A dtype or role of an unknown name is refused by name", "[proto]") {
  CHECK(Changed("/tensors/q/dtype", "BF17")[0].find("BF17") != std::string::npos);
  CHECK(Changed("/tensors/q/dtype", "")[0].find("dtype") != std::string::npos);
  CHECK(Changed("/workers/0/role", "TEACHER")[0].find("TEACHER") != std::string::npos);
}

TEST_CASE("A dtype, role or overlap of an unknown number is refused by name", "[proto]") {
  const std::string dtypes =
      "FP64, FP32, FP16, BF16, FP8_E4M3, FP8_E5M2, INT64, INT32, INT16, INT8, UINT8, BOOL";
  CHECK(Changed("/tensors/q/dtype", 99) ==
        Wanted{"tensor q: dtype 99 is unknown, want one of " + dtypes});
  CHECK(Changed("/tensors/q/dtype", "DTYPE_UNSPECIFIED") ==
        Wanted{"tensor q: dtype is missing, want one of " + dtypes});
  CHECK(Changed("/tensors/q/overlap", 7) ==
        Wanted{"tensor q: overlap 7 is unknown, want IDENTICAL or nothing"});
  CHECK(Changed("/workers/0/role", 9) ==
        Wanted{"worker policy/0: role 9 is unknown, want TRAINER or ROLLOUT"});
  CHECK(Changed("/workers/1/params/1/dtype", -3) ==
        Wanted{"worker engine0/0, param w: dtype -3 is unknown, want one of " + dtypes});
}

TEST_CASE("Each field that must be there is asked for by name", "[proto]") {
  CHECK(Changed("/job", nullptr) == Wanted{"job \"\" is empty, want a name"});
  CHECK(Changed("/tensors/q/dtype", nullptr)[0].find("tensor q: dtype is missing") == 0);
  CHECK(Changed("/tensors/q/shape", nullptr) ==
        Wanted{"tensor q: shape has 0 dimensions, want 1..8"});
  CHECK(Changed("/workers/0/role", nullptr) ==
        Wanted{"worker policy/0: role is required, want TRAINER or ROLLOUT"});
  CHECK(Changed("/workers/0/group", nullptr) == Wanted{"workers[0]: group is required"});
  CHECK(Changed("/workers/0/node", nullptr) == Wanted{"worker policy/0: node is required"});
  CHECK(Changed("/workers/0/params/0/name", nullptr) ==
        Wanted{"worker policy/0, param 0: name is empty, want a name"});
  CHECK(Changed("/workers/0/params/0/shape", nullptr) ==
        Wanted{kFused + ": shape has 0 dimensions, want 1..8"});
  CHECK(Changed("/workers/0/params/0/pieces/1/tensor", nullptr) ==
        Wanted{kFused + ", piece 1 of tensor \"\": the tensor is not declared, want one of the "
                        "tensors or aliases"});
  CHECK(Changed("/workers/0/params/0/pieces/1/box", nullptr) ==
        Wanted{kFused + ", piece 1 of tensor k: box.lo has 0 entries and box.hi 0, want one per "
                        "dimension of the tensor: 2"});
  CHECK(Changed("/workers/0/params/0/pieces/1/at", nullptr) ==
        Wanted{kFused + ", piece 1 of tensor k: at has 0 entries, want one per dimension of the "
                        "param: 2"});
}

TEST_CASE("A file without workers or tensors is refused", "[proto]") {
  CHECK(Texts(RefusedText("{}")) == Wanted{"job \"\" is empty, want a name",
                                           "job has no trainer group, want one",
                                           "job has no rollout group, want at least one"});
  json file = GqaFile();
  file.erase("tensors");
  CHECK(Refused(file).size() == 8);  // every piece names what is missing
}

TEST_CASE("Negative numbers are refused by the field's name", "[proto]") {
  CHECK(Changed("/tensors/q/shape/0", -16)[0] == "tensor q: shape[0] is -16, want >= 0");
  CHECK(Changed("/workers/0/rank", -1) == Wanted{"workers[0]: rank is -1, want >= 0"});
  CHECK(Changed("/workers/0/params/0/shape/1", -2) ==
        Wanted{kFused + ": shape[1] is -2, want >= 0"});
  CHECK(Changed("/workers/0/params/0/offset_bytes", -4) ==
        Wanted{kFused + ": offset_bytes is -4, want >= 0"});
  CHECK(Changed("/workers/1/params/1/strides/0", -4) ==
        Wanted{"worker engine0/0, param w: strides[0] is -4, want >= 1"});
  CHECK(Changed("/workers/0/params/0/pieces/0/at/0", -1) ==
        Wanted{kFused + ", piece 0 of tensor q: at[0] is -1 and the box's extent there 8, want "
                        "both inside 0..20, the param's extent"});
  CHECK(Changed("/workers/0/params/1/pieces/0/axes/0", -1) ==
        Wanted{"worker policy/0, param w_t, piece 0 of tensor w: axes[0] is -1, want different "
               "local dimensions 0..1"});
}

TEST_CASE("A piece must fit into its param as at and axes say", "[proto]") {
  const std::string piece = kFused + ", piece 3 of tensor k: ";
  CHECK(Changed("/workers/0/params/0/pieces/3/at", {19, 0}) ==
        Wanted{piece + "at[0] is 19 and the box's extent there 2, want both inside 0..20, the "
                       "param's extent"});
  CHECK(Changed("/workers/0/params/0/pieces/3/at", {18, 1}) ==
        Wanted{piece + "at[1] is 1 and the box's extent there 2, want both inside 0..2, the "
                       "param's extent"});
  CHECK(Changed("/workers/0/params/0/pieces/3/at", {18, 0, 0}) ==
        Wanted{piece + "at has 3 entries, want one per dimension of the param: 2"});
  CHECK(Changed("/workers/0/params/0/pieces/3/axes", {0}) ==
        Wanted{piece + "axes has 1 entries, want one per dimension of the tensor: 2"});
  CHECK(Changed("/workers/0/params/0/pieces/3/axes", {0, 0}) ==
        Wanted{piece + "axes[1] is 0 again, want different local dimensions 0..1"});
  CHECK(Changed("/workers/0/params/0/pieces/3/axes", {0, 2}) ==
        Wanted{piece + "axes[1] is 2, want different local dimensions 0..1"});
}

TEST_CASE("A tensor of more dimensions than its param is refused", "[proto]") {
  json file = GqaFile();
  file["workers"][1]["params"][1] = {
      {"name", "w"}, {"shape", {6}}, {"pieces", {test::PieceOf("w", {0, 0}, {2, 3}, {0})}}};
  CHECK(Texts(Refused(file)) ==
        Wanted{"worker engine0/0, param w, piece 0 of tensor w: the tensor has 2 dimensions and "
               "the param 1, want a local dimension for each of the tensor's"});
}

TEST_CASE("A param of more dimensions than the tensor holds it in the last ones", "[proto]") {
  json file = GqaFile();
  file["workers"][1]["params"][1] = {{"name", "w"},
                                     {"shape", {4, 2, 3}},
                                     {"pieces", {test::PieceOf("w", {0, 0}, {2, 3}, {3, 0, 0})}}};
  const Job job = Accepted(file).job;
  const Piece& piece = job.layouts[0].pieces[2];
  CHECK(piece.axes == Index{1, 2});
  CHECK(piece.strides == Index{3, 1});
  CHECK(piece.offset_bytes == 3 * 6 * 4);
}

TEST_CASE("Strides are one per dimension, positive and not self-overlapping", "[proto]") {
  const std::string param = "worker engine0/0, param w: ";
  CHECK(Changed("/workers/1/params/1/strides", {4}) ==
        Wanted{param + "strides has 1 entries, want one per dimension of shape: 2"});
  CHECK(Changed("/workers/1/params/1/strides", {4, 0}) ==
        Wanted{param + "strides[1] is 0, want >= 1"});
  CHECK(Changed("/workers/1/params/1/strides", {2, 1}) ==
        Wanted{param + "strides[0] is 2, inside the span of the smaller strides, want at least 3"});
  CHECK(Accepted([] {
          json file = GqaFile();
          file["workers"][1]["params"][1]["strides"] = {1, 2};
          return file;
        }())
            .job.layouts[0]
            .pieces[2]
            .strides == Index{1, 2});
}

TEST_CASE("Names of groups and nodes are checked", "[proto]") {
  CHECK(Changed("/workers/0/group", "pol/icy") ==
        Wanted{"workers[0]: group pol/icy has a character at byte 3 that is none of A-Z a-z 0-9 . "
               "_ -"});
  CHECK(Changed("/workers/0/node", "n 0") ==
        Wanted{"worker policy/0: node n 0 has a character at byte 1 that is none of A-Z a-z 0-9 . "
               "_ -"});
}

TEST_CASE("Names of tensors, params and buffers are checked", "[proto]") {
  json file = GqaFile();
  file["tensors"]["a\tb"] = {{"dtype", "BF16"}, {"shape", {1}}};
  file["tensors"][""] = {{"dtype", "BF16"}, {"shape", {1}}};
  file["workers"][0]["params"][0]["name"] = std::string(1025, 'x');
  file["workers"][0]["params"][1]["buffer"] = "b\n";
  const Refusals refusals = Refused(file);
  CHECK(Kinds(refusals) == Wanted{"name", "name", "name", "name"});
  CHECK(refusals[0].text == "tensor \"\": name is empty, want a name");
  CHECK(refusals[1].text ==
        "tensor \"a\\tb\": name has a control character at byte 1, want printable ones");
  CHECK(refusals[2].text.find("name has 1025 bytes, want at most 1024") != std::string::npos);
  CHECK(refusals[3].text ==
        "worker policy/0, param w_t: buffer \"b\\n\" has a control character at byte 1, want "
        "printable ones");
}

TEST_CASE("Two params of one name on a worker are refused", "[proto]") {
  CHECK(Changed("/workers/0/params/1/name", "linear_qkv.weight") ==
        Wanted{kFused + ": the name is there twice, want params of a worker to differ in name"});
}

TEST_CASE("Groups and ranks of a file are checked together", "[proto]") {
  json file = GqaFile();
  file["workers"][1]["rank"] = 2;
  file["workers"][1]["role"] = "TRAINER";
  CHECK(Texts(Refused(file)) ==
        Wanted{"group engine0: missing rank 0..1, want ranks 0..2 without gap",
               "job has 2 trainer groups (engine0, policy), want one",
               "job has no rollout group, want at least one"});
  file = GqaFile();
  file["workers"].push_back(file["workers"][1]);
  CHECK(Texts(Refused(file)) ==
        Wanted{"worker engine0/0 is there twice, want each rank of a group once"});
}

TEST_CASE("Reasons about params and about groups are told together, with what they speak of",
          "[proto]") {
  json file = GqaFile();
  file["tensors"]["q"]["shape"] = json::array();
  file["workers"][0]["params"][1]["pieces"][0]["box"]["hi"] = {2, 4};
  file["workers"][1]["rank"] = 1;
  const Refusals refusals = Refused(file);
  REQUIRE(refusals.size() == 3);
  CHECK(refusals[0] == Refusal{"shape", "q", "", "tensor q: shape has 0 dimensions, want 1..8"});
  CHECK(refusals[1] == Refusal{"box", "w", "policy/0",
                               "worker policy/0, param w_t, piece 0 of tensor w: box.hi[1] is 4, "
                               "want at most the tensor's extent 3"});
  CHECK(refusals[2] == Refusal{"rank", "", "engine0",
                               "group engine0: missing rank 0, want ranks 0..1 without gap"});
}

TEST_CASE("The same file gives the same reasons in the same order", "[proto]") {
  json file = GqaFile();
  for (int i = 0; i < 50; ++i) {
    file["tensors"]["bad" + std::to_string(i)] = {{"dtype", "BF16"}, {"shape", {-1}}};
  }
  const Refusals refusals = Refused(file);
  CHECK(refusals.size() == 50);
  CHECK(Refused(file) == refusals);
  CHECK(refusals[1].tensor == "bad1");
  CHECK(refusals[2].tensor == "bad10");
}

TEST_CASE("An alias names its target's tensor, whether it is declared itself or not", "[proto]") {
  json file = GqaFile();
  file["aliases"] = {{"head", "q"}, {"other", "q"}};
  file["tensors"]["head"] = file["tensors"]["q"];
  file["workers"][1]["params"][0]["pieces"][0]["tensor"] = "head";
  file["workers"][0]["params"][0]["pieces"][0]["tensor"] = "other";
  const LoadedJob loaded = Accepted(file);
  CHECK(loaded.job == Accepted(GqaFile()).job);
  CHECK(loaded.wire[0].aliases().at("head") == "q");
  CHECK_FALSE(loaded.wire[0].aliases().contains("other"));
  CHECK(std::get<Registration>(RegistrationFromProto(loaded.wire[0])) == loaded.registrations[0]);
}

TEST_CASE("Aliases of nothing, of aliases, in circles and of another kind are refused", "[proto]") {
  json file = GqaFile();
  file["aliases"] = {{"a", "gone"}, {"b", "c"}, {"c", "q"}, {"d", "d"}, {"k", "q"}, {"", "q"}};
  const Refusals refusals = Refused(file);
  CHECK(Texts(refusals) ==
        Wanted{"alias \"\": name is empty, want a name",
               "alias a: its target gone is not among the tensors",
               "alias b: its target c is itself an alias of q, want a tensor",
               "alias d: its target d is itself an alias of d, want a tensor",
               "alias k: it is declared BF16 [4,2] and its target q BF16 [16,2], want the same"});
  CHECK(refusals[3].kind == "alias");
  CHECK(refusals[3].tensor == "d");
}

TEST_CASE("A refused tensor is told once, not again by each of its pieces", "[proto]") {
  CHECK(Changed("/tensors/q/shape", {16, -2}) == Wanted{"tensor q: shape[1] is -2, want >= 0"});
}

TEST_CASE("Views of one buffer share it, also where its name is another param's default",
          "[proto]") {
  json file = GqaFile();
  file["workers"][0]["params"][1]["buffer"] = "linear_qkv.weight";
  file["workers"][0]["params"][1]["offset_bytes"] = 81;  // odd is fine
  const Job job = Accepted(file).job;
  const Layout& policy = job.layouts[1];
  CHECK(policy.buffers == SharedList<Buffer>{{"linear_qkv.weight", 105}});
  CHECK(policy.params[1].buffer == 0);
  CHECK(policy.pieces[4].offset_bytes == 81);
}

TEST_CASE("A local param has no pieces", "[proto]") {
  CHECK(Changed("/workers/1/params/1/local", true) ==
        Wanted{"worker engine0/0, param w: it is local and has 1 pieces, want none: a local param "
               "is never written"});
}

TEST_CASE("A param without pieces needs its dtype only where it shares a buffer", "[proto]") {
  json file = GqaFile();
  json& params = file["workers"][1]["params"];
  params.push_back({{"name", "rope"}, {"shape", {6}}, {"local", true}});
  params.push_back({{"name", "seen"}, {"shape", {6}}, {"local", true}, {"dtype", "FP32"}});
  const Job job = Accepted(file).job;
  CHECK(job.layouts[0].params[2].dtype == Dtype::kUint8);
  CHECK(job.layouts[0].buffers[3] == Buffer{"seen", 24});
  params[2]["buffer"] = "seen";
  params[2]["offset_bytes"] = 24;
  CHECK(Texts(Refused(file)) ==
        Wanted{"worker engine0/0, param rope: dtype is missing, want it of a param without pieces "
               "in a buffer that others use too (seen)"});
  params[2]["dtype"] = "INT16";
  CHECK(Accepted(file).job.layouts[0].buffers[2] == Buffer{"seen", 36});
}

TEST_CASE("A trainer's param may have no pieces, and a rollout's of extent 0", "[proto]") {
  json file = GqaFile();
  file["workers"][0]["params"].push_back({{"name", "bias"}, {"shape", {6}}});
  file["workers"][1]["params"].push_back({{"name", "none"}, {"shape", {0, 4}}});
  CHECK(Accepted(file).job.layouts[0].params[2].shape == Index{0, 4});
}

}  // namespace
}  // namespace wb
