// Cases 14, 18, 33, 42, 44, 45 and 146: padding, transposes, ties, uneven and equal shards, views.
#include <map>
#include <set>

#include "tests/field/rehearse_fixture.h"

namespace wb::test {
namespace {

/// What a rehearsal leaves where no piece lies.
const std::string kSentinel(4, '\xA5');

TEST_CASE("padding rows of a vocabulary are neither sent nor written", "[field][case-14]") {
  ParamSpec part{.name = "embed", .shape = {4, 2}};
  part.pieces = {{.tensor = "embed", .lo = {8, 0}, .hi = {10, 2}, .at = {0, 0}}};
  const ParamSpec padding{.name = "embed", .shape = {4, 2}, .dtype = "FP32"};
  ParamSpec padded{.name = "embed", .shape = {6, 2}};
  padded.pieces = {{.tensor = "embed", .lo = {6, 0}, .hi = {10, 2}, .at = {0, 0}}};
  const LayoutFileSpec file{
      .tensors = {{"embed", "FP32", {10, 2}}},
      .workers = {
          {.group = "policy", .rank = 0, .params = {Whole("embed", "embed", {0, 0}, {4, 2})}},
          {.group = "policy", .rank = 1, .params = {Whole("embed", "embed", {4, 0}, {8, 2})}},
          {.group = "policy", .rank = 2, .params = {part}},
          {.group = "policy", .rank = 3, .params = {padding}},
          {.group = "engine0", .rank = 0, .params = {Whole("embed", "embed", {0, 0}, {6, 2})}},
          {.group = "engine0", .rank = 1, .params = {padded}}}};
  const nlohmann::json plan = Planned(file);
  for (const nlohmann::json& move : plan["moves"]) CHECK(move["src"] != "policy/3");
  CHECK(plan["summary"]["bytes"] == 10 * 2 * 4);

  CheckpointFile checkpoint;
  checkpoint.Add("embed", "F32", {10, 2}, Repeat(CountUp(0, 10), 2));
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  CHECK(Floats(rehearsal, "engine0", 0, "embed") == Repeat(CountUp(0, 6), 2));
  const std::string bytes = rehearsal.Dumped("engine0", 1, "embed").bytes;
  REQUIRE(bytes.size() == 6 * 2 * 4);
  std::vector<float> rows(8);
  std::memcpy(rows.data(), bytes.data(), 32);
  CHECK(rows == Repeat(CountUp(6, 4), 2));
  CHECK(bytes.substr(32) == kSentinel + kSentinel + kSentinel + kSentinel);
}

/// 10 * row + column.
std::vector<float> RowColumn(int rows, int columns) {
  std::vector<float> values;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) values.push_back(static_cast<float>(10 * i + j));
  }
  return values;
}

ParamSpec Transposed(const std::string& name, const std::string& tensor, Indices lo, Indices hi) {
  ParamSpec param{.name = name, .shape = {hi[1] - lo[1], hi[0] - lo[0]}};
  param.pieces = {
      {.tensor = tensor, .lo = std::move(lo), .hi = std::move(hi), .at = {0, 0}, .axes = {1, 0}}};
  return param;
}

TEST_CASE("a transpose is what the layout says, and a square matrix does not hide it",
          "[field][case-18]") {
  const LayoutFileSpec file{
      .tensors = {{"square", "FP32", {3, 3}}, {"turned", "FP32", {3, 3}}, {"wide", "FP32", {2, 3}}},
      .workers = {{.group = "policy",
                   .params = {Whole("square", "square", {0, 0}, {3, 3}),
                              Transposed("turned", "turned", {0, 0}, {3, 3}),
                              Whole("wide", "wide", {0, 0}, {2, 3})}},
                  {.group = "engine0",
                   .params = {Transposed("square_t", "square", {0, 0}, {3, 3}),
                              Whole("turned", "turned", {0, 0}, {3, 3}),
                              Transposed("wide_t", "wide", {0, 0}, {2, 3})}}}};
  CheckpointFile checkpoint;
  checkpoint.Add("square", "F32", {3, 3}, RowColumn(3, 3));
  checkpoint.Add("turned", "F32", {3, 3}, RowColumn(3, 3));
  checkpoint.Add("wide", "F32", {2, 3}, RowColumn(2, 3));
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  const std::vector<float> square = Floats(rehearsal, "engine0", 0, "square_t");
  CHECK(square == std::vector<float>{0, 10, 20, 1, 11, 21, 2, 12, 22});
  CHECK(square[1 * 3 + 2] == 21);
  CHECK(square[2 * 3 + 1] == 12);
  CHECK(Floats(rehearsal, "engine0", 0, "turned") == RowColumn(3, 3));
  CHECK(Floats(rehearsal, "engine0", 0, "wide_t") == std::vector<float>{0, 10, 1, 11, 2, 12});
}

TEST_CASE("a box that does not fit its param, read through axes, is refused", "[field][case-18]") {
  LayoutFileSpec file{
      .tensors = {{"wide", "FP32", {2, 3}}},
      .workers = {{.group = "policy", .params = {Whole("wide", "wide", {0, 0}, {2, 3})}},
                  {.group = "engine0", .params = {Transposed("wide_t", "wide", {0, 0}, {2, 3})}}}};
  ParamSpec& param = file.workers[1].params[0];
  SECTION("a transpose is declared, the shape is not transposed") {
    param.shape = {2, 3};
  }
  SECTION("the shape is transposed, no transpose is declared") {
    param.pieces[0].axes = {0, 1};
  }
  const std::string reasons = Refused(file);
  CHECK(Contains(reasons, "engine0/0"));
  CHECK(Contains(reasons, "wide_t"));
}

TEST_CASE("a rollout that keeps tied tensors apart gets both, in every version",
          "[field][case-33]") {
  const LayoutFileSpec file{
      .tensors = {{"embed", "FP32", {10, 2}}},
      .workers = {{.group = "policy", .params = {Whole("embed", "embed", {0, 0}, {10, 2})}},
                  {.group = "engine0",
                   .params = {Whole("embed", "embed", {0, 0}, {10, 2}),
                              Whole("lm_head", "lm_head", {0, 0}, {10, 2})}}},
      .aliases = {{"lm_head", "embed"}}};
  for (const std::uint64_t versions : {1U, 2U}) {
    const Rehearsal rehearsal = Pass(file, {.fill = "row", .versions = versions});
    const std::vector<float> rows = Repeat(CountUp(static_cast<std::int64_t>(versions), 10), 2);
    CHECK(Floats(rehearsal, "engine0", 0, "embed") == rows);
    CHECK(Floats(rehearsal, "engine0", 0, "lm_head") == rows);
  }
}

/// Rows [begin, end) of tensor `name` [.., 2], which may be none.
ParamSpec RowsOf(const std::string& name, std::int64_t begin, std::int64_t end) {
  if (begin < end) return Whole(name, name, {begin, 0}, {end, 2});
  return {.name = name, .shape = {0, 2}, .dtype = "FP32"};
}

/// Four trainers with the given rows of tensors five [5, 2] and two [2, 2]; one rollout with all.
LayoutFileSpec UnevenFile(const std::vector<std::int64_t>& five,
                          const std::vector<std::int64_t>& two) {
  LayoutFileSpec file{.tensors = {{"five", "FP32", {5, 2}}, {"two", "FP32", {2, 2}}},
                      .workers = {}};
  for (std::size_t t = 0; t + 1 < five.size(); ++t) {
    file.workers.push_back(
        {.group = "policy",
         .rank = static_cast<std::int32_t>(t),
         .params = {RowsOf("five", five[t], five[t + 1]), RowsOf("two", two[t], two[t + 1])}});
  }
  file.workers.push_back(
      {.group = "engine0", .params = {RowsOf("five", 0, 5), RowsOf("two", 0, 2)}});
  return file;
}

TEST_CASE("uneven and empty shards make the whole tensor", "[field][case-42]") {
  const LayoutFileSpec file = UnevenFile({0, 3, 5, 5, 5}, {0, 1, 2, 2, 2});
  const nlohmann::json plan = Planned(file);
  for (const nlohmann::json& move : plan["moves"]) {
    CHECK(move["src"] != "policy/2");
    CHECK(move["src"] != "policy/3");
  }
  CheckpointFile checkpoint;
  checkpoint.Add("five", "F32", {5, 2}, Repeat(CountUp(0, 5), 2));
  checkpoint.Add("two", "F32", {2, 2}, Repeat(CountUp(0, 2), 2));
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  CHECK(Floats(rehearsal, "engine0", 0, "five") == Repeat<float>({0, 1, 2, 3, 4}, 2));
  CHECK(Floats(rehearsal, "engine0", 0, "two") == Repeat<float>({0, 1}, 2));
}

TEST_CASE("shards that do not add up to the tensor are refused with what is missing",
          "[field][case-42]") {
  LayoutFileSpec file = UnevenFile({0, 3, 5, 5, 5}, {0, 1, 2, 2, 2});
  file.workers[1].params[0] = RowsOf("five", 3, 4);
  const std::string reasons = Refused(file);
  CHECK(Contains(reasons, "five"));
  CHECK(Contains(reasons, "engine0/0"));
}

TEST_CASE("of replicated shards each slice is sent once", "[field][case-44]") {
  LayoutFileSpec file{.tensors = {{"w", "FP32", {16, 2}}}, .workers = {}};
  for (std::int32_t t = 0; t < 8; ++t) {
    const std::int64_t lo = 4 * (t / 2);
    file.workers.push_back(
        {.group = "policy", .rank = t, .params = {Whole("w", "w", {lo, 0}, {lo + 4, 2})}});
  }
  file.workers.push_back({.group = "engine0", .params = {Whole("w", "w", {0, 0}, {16, 2})}});

  std::set<std::int64_t> first_rows;
  const nlohmann::json plan = Planned(file);
  for (const nlohmann::json& move : plan["moves"]) {
    const std::int64_t lo = move["box"]["lo"][0];
    CHECK(move["box"]["hi"][0] == lo + 4);
    first_rows.insert(lo);
  }
  CHECK(plan["moves"].size() == 4);
  CHECK(first_rows == std::set<std::int64_t>{0, 4, 8, 12});

  const Rehearsal rehearsal = Pass(file);
  for (const RehearsedVersion& version : rehearsal.versions()) {
    CHECK(version.bytes_moved == 16 * 2 * 4);
  }
  CHECK(Floats(rehearsal, "engine0", 0, "w") == Repeat(CountUp(3, 16), 2));
}

TEST_CASE("a tensor is transposed before it is cut, not shard by shard", "[field][case-45]") {
  const LayoutFileSpec file{
      .tensors = {{"router", "FP32", {4, 6}}},
      .workers = {
          {.group = "policy", .params = {Whole("router", "router", {0, 0}, {4, 6})}},
          {.group = "engine0", .rank = 0, .params = {Transposed("gate", "router", {0, 0}, {4, 3})}},
          {.group = "engine0",
           .rank = 1,
           .params = {Transposed("gate", "router", {0, 3}, {4, 6})}}}};
  CheckpointFile checkpoint;
  checkpoint.Add("router", "F32", {4, 6}, RowColumn(4, 6));
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  CHECK(rehearsal.Dumped("engine0", 0, "gate").shape == Indices{3, 4});
  CHECK(Floats(rehearsal, "engine0", 0, "gate") ==
        std::vector<float>{0, 10, 20, 30, 1, 11, 21, 31, 2, 12, 22, 32});
  CHECK(Floats(rehearsal, "engine0", 1, "gate") ==
        std::vector<float>{3, 13, 23, 33, 4, 14, 24, 34, 5, 15, 25, 35});
}

/// A whole tensor of 8 FP32, as a view of buffer `flat`.
ParamSpec View(const std::string& name, const std::string& tensor, std::int64_t offset_bytes) {
  ParamSpec param = Whole(name, tensor, {0}, {8});
  param.buffer = "flat";
  param.offset_bytes = offset_bytes;
  return param;
}

TEST_CASE("two names of one storage are moved once and both are served", "[field][case-146]") {
  const LayoutFileSpec file{
      .tensors = {{"a", "FP32", {8}}, {"c", "FP32", {8}}},
      .workers = {{.group = "policy",
                   .params = {View("a", "a", 0), View("b", "b", 0), View("c", "c", 32)}},
                  {.group = "engine0",
                   .params = {View("a", "a", 0), View("b", "b", 0), View("c", "c", 64)}}},
      .aliases = {{"b", "a"}}};
  const Rehearsal rehearsal = Pass(file);
  for (const RehearsedVersion& version : rehearsal.versions()) {
    CHECK(version.bytes_moved == 2 * 32);
  }
  CHECK(Floats(rehearsal, "engine0", 0, "a") == CountUp(3, 8));
  CHECK(Floats(rehearsal, "engine0", 0, "b") == CountUp(3, 8));
  CHECK(Floats(rehearsal, "engine0", 0, "c") == CountUp(3, 8));
}

TEST_CASE("two tensors written into one storage are refused with both params",
          "[field][case-146]") {
  const LayoutFileSpec file{
      .tensors = {{"a", "FP32", {8}}, {"c", "FP32", {8}}},
      .workers = {{.group = "policy", .params = {View("a", "a", 0), View("c", "c", 32)}},
                  {.group = "engine0", .params = {View("a", "a", 0), View("c", "c", 16)}}}};
  const std::string reasons = Refused(file);
  CHECK(Contains(reasons, "engine0/0"));
  CHECK(Contains(reasons, "a (tensor a)"));
  CHECK(Contains(reasons, "c (tensor c)"));
}

}  // namespace
}  // namespace wb::test
