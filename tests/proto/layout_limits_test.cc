#include <chrono>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>
#include <variant>

#include "proto/convert.h"
#include "proto/door/reasons.h"
#include "tests/proto/layout_cases.h"
#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb {
namespace {

using nlohmann::json;
using test::Accepted;
using test::GqaFile;
using test::Kinds;
using test::PairFile;
using test::Refused;
using test::Texts;
using test::WholeParam;
using Wanted = std::vector<std::string>;

constexpr std::int64_t kHuge = std::int64_t{1} << 62;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

#ifdef NDEBUG
constexpr std::chrono::milliseconds kLoadTime = std::chrono::seconds(3);
#else
constexpr std::chrono::milliseconds kLoadTime = std::chrono::seconds(12);
#endif

json Tensors(const json& shape, const std::string& dtype = "BF16") {
  return {{"t", {{"dtype", dtype}, {"shape", shape}}}};
}

// A pair that moves one whole tensor.
json Moved(const std::vector<std::int64_t>& shape, const std::string& dtype = "BF16") {
  const json params = json::array({WholeParam("p", "t", shape)});
  return PairFile(Tensors(shape, dtype), params, params);
}

TEST_CASE("Tensors of one and of eight dimensions are accepted, of nine refused", "[proto]") {
  CHECK(Accepted(Moved({5})).job.layouts[0].pieces[0].strides == Index{1});
  CHECK(Accepted(Moved(std::vector<std::int64_t>(8, 2))).job.layouts[0].buffers[0].bytes == 512);
  const Refusals refusals = Refused(Moved(std::vector<std::int64_t>(9, 1)));
  CHECK(Texts(refusals) == Wanted{"tensor t: shape has 9 dimensions, want 1..8",
                                  "worker policy/0, param p: shape has 9 dimensions, want 1..8",
                                  "worker engine/0, param p: shape has 9 dimensions, want 1..8"});
}

TEST_CASE("Extents whose product overflows are refused by name", "[proto]") {
  const std::vector<std::int64_t> shape(8, kHuge);
  const Refusals refusals = Refused(Moved(shape));
  CHECK(Kinds(refusals) == Wanted{"limit", "limit", "limit"});
  CHECK(refusals[0].text.find("tensor t: the bytes of shape [4611686018427387904,") == 0);
  CHECK(refusals[1].text.find("worker policy/0, param p: the elements of shape") == 0);
  CHECK(refusals[0].text.find("do not fit 63 bits") != std::string::npos);
}

TEST_CASE("Elements that fit and bytes that do not are refused", "[proto]") {
  CHECK(Texts(Refused(PairFile(Tensors({kMax}), json::array(), json::array()))) ==
        Wanted{"tensor t: the bytes of shape [9223372036854775807] do not fit 63 bits"});
  CHECK(Accepted(PairFile(Tensors({kMax}, "UINT8"), json::array(), json::array()))
            .job.tensors.empty());  // nobody holds it
  CHECK(Kinds(Refused(Moved({kHuge}, "FP32"))) == Wanted{"limit"});
}

TEST_CASE("An extent 0 does not hide an overflow behind it", "[proto]") {
  CHECK(Kinds(Refused(PairFile(Tensors({0, kHuge, kHuge}), json::array(), json::array()))) ==
        Wanted{"limit"});
  CHECK(Accepted(PairFile(Tensors({0, 7}), json::array(), json::array())).job.tensors.empty());
}

TEST_CASE("Huge numbers in any field of a param are refused, not wrapped", "[proto]") {
  const auto changed = [](const std::string& pointer, const json& value) {
    json file = GqaFile();
    file[json::json_pointer(pointer)] = value;
    return Kinds(Refused(file));
  };
  CHECK(changed("/workers/1/params/1/strides", {kMax, 1}) == Wanted{"limit"});
  CHECK(changed("/workers/1/params/1/strides", {kMax, kMax}) == Wanted{"limit"});
  CHECK(changed("/workers/1/params/1/offset_bytes", kMax) == Wanted{"limit"});
  CHECK(changed("/workers/1/params/1/offset_bytes", kMax - 27) == Wanted{"limit"});
  CHECK(changed("/workers/1/params/1/pieces/0/at", {kMax, kMax}) == Wanted{"piece", "piece"});
  CHECK(changed("/workers/1/params/1/pieces/0/box/hi", {kMax, 3}) == Wanted{"box"});
  CHECK(changed("/workers/1/params/1/pieces/0/box/lo",
                {std::numeric_limits<std::int64_t>::min(), 0}) == Wanted{"box"});
  CHECK(changed("/workers/1/params/1/pieces/0/axes", {2147483647, 0}) == Wanted{"piece"});
  CHECK(changed("/workers/1/rank", 2147483647) == Wanted{"rank"});
}

TEST_CASE("The last offset that fits is accepted", "[proto]") {
  json file = GqaFile();
  file["workers"][1]["params"][1]["offset_bytes"] = kMax - 28;
  CHECK(Accepted(file).job.layouts[0].buffers[1].bytes == static_cast<std::uint64_t>(kMax));
}

TEST_CASE("A param may be larger than any memory: nothing is allocated by its size", "[proto]") {
  json file = GqaFile();
  file["workers"][0]["params"][0]["shape"] = {kHuge / 8, 2};
  CHECK(Accepted(file).job.layouts[1].buffers[0].bytes == static_cast<std::uint64_t>(kHuge / 2));
}

TEST_CASE("Integers beyond 2^53 keep every digit", "[proto]") {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  CHECK(Accepted(Moved({odd}, "UINT8")).job.tensors[0].shape == Index{odd});
}

TEST_CASE("More workers than the limit are refused before any is looked at", "[proto]") {
  json file = GqaFile();
  file["workers"] = json::array();
  for (std::size_t i = 0; i <= kMaxWorkers; ++i) file["workers"].push_back(json::object());
  CHECK(Texts(Refused(file)) == Wanted{"job has 65537 workers, want at most 65536"});
}

TEST_CASE("Of very many reasons the first ten thousand are told and the others counted",
          "[proto]") {
  json file = GqaFile();
  json piece = file["workers"][0]["params"][0]["pieces"][0];
  piece["tensor"] = "gone";
  json pieces = json::array();
  for (std::size_t i = 0; i < kMaxReasons + 5; ++i) pieces.push_back(piece);
  file["workers"][0]["params"][0]["pieces"] = pieces;
  const Refusals refusals = Refused(file);
  REQUIRE(refusals.size() == kMaxReasons + 1);
  CHECK(refusals.back() == Refusal{"limit", "", "", "and 5 more reasons"});
}

TEST_CASE("A file of twenty thousand tensors loads in time", "[proto]") {
  std::string tensors;
  std::string params;
  for (int i = 0; i < 20'000; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    const std::string name = "\"model.layers." + std::to_string(i) + ".weight\"";
    tensors += comma + name + R"(:{"dtype":"BF16","shape":[64,32]})";
    params += comma + R"({"name":)" + name + R"(,"shape":[64,32],"pieces":[{"tensor":)" + name +
              R"(,"box":{"lo":[0,0],"hi":[64,32]},"at":[0,0]}]})";
  }
  const std::string worker = R"(,"rank":0,"node":"n0","params":[)" + params + "]}";
  const std::string text = R"({"job":"big","tensors":{)" + tensors +
                           R"(},"workers":[{"role":"TRAINER","group":"policy")" + worker +
                           R"(,{"role":"ROLLOUT","group":"engine")" + worker + "]}";
  // CPU time of this thread: the machine may be busy. The bound is the release build's.
  const std::clock_t start = std::clock();
  const std::variant<LoadedJob, Refusals> loaded = JobFromJson(text);
  const std::chrono::milliseconds took((std::clock() - start) * 1000 / CLOCKS_PER_SEC);
  REQUIRE(std::holds_alternative<LoadedJob>(loaded));
  CHECK(std::get<LoadedJob>(loaded).job.tensors.size() == 20'000);
  CHECK(took < test::Slack(kLoadTime));
}

}  // namespace
}  // namespace wb
