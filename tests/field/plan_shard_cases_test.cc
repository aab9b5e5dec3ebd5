// Faults seen in the field, as far as planning meets them: what a layout file with the case's
// values is planned as, or why it is refused. Bytes move through memory by the slow walk of
// tests/support/byte_walk.h where a value says more than a box.
// Here: how shards are cut, padded and transposed.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/field/plan_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using nlohmann::ordered_json;
using test::AnyMentions;
using test::EgressOf;
using test::JobBuilder;
using test::MustPlan;
using test::MustRefuse;
using test::ParamSpec;
using test::Planned;
using test::Received;
using test::Rows;
using test::RowsByWorker;
using test::TensorsOfKind;

TEST_CASE("padding rows of a vocabulary are never moved", "[field][case-14]") {
  constexpr std::int64_t kVocab = 10;
  JobBuilder builder;
  builder.AddTensor("embed", Dtype::kInt32, {kVocab});
  for (int r = 0; r < 4; ++r) {  // padded to 16: 4 rows a rank
    builder.Trainer(r, "t0").AddParam(
        {.name = "embed",
         .shape = {4},
         .pieces = {{"embed", {std::min(4L * r, kVocab)}, {std::min(4L * r + 4, kVocab)}, {0}}}});
  }
  for (int r = 0; r < 2; ++r) {  // padded to 12: 6 rows a rank
    builder.Rollout("e", r, "r0")
        .AddParam({.name = "embed",
                   .shape = {6},
                   .pieces = {{"embed", {6 * r}, {std::min(6L * r + 6, kVocab)}, {0}}}});
  }
  const Planned planned = MustPlan(builder.Json());
  REQUIRE(planned.plan.bytes == 40);
  REQUIRE(EgressOf(planned, "policy/3") == 0);
  REQUIRE(EgressOf(planned, "policy/2") == 8);
  const auto value = [](const Tensor&, const Index& at, std::uint64_t) {
    return static_cast<std::uint64_t>(at[0]);
  };
  const auto hole = static_cast<std::int32_t>(0xA5A5A5A5);
  REQUIRE(Received<std::int32_t>(planned, "e/0", value) ==
          std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  REQUIRE(Received<std::int32_t>(planned, "e/1", value) ==
          std::vector<std::int32_t>{6, 7, 8, 9, hole, hole});
}

JobBuilder Transposed(Index shape, Index local_shape) {
  JobBuilder builder;
  builder.AddTensor("s", Dtype::kInt32, shape);
  builder.Trainer(0, "t0").Holds("s", {0, 0}, shape);
  builder.Rollout("e", 0, "r0")
      .AddParam({.name = "d",
                 .shape = std::move(local_shape),
                 .pieces = {{"s", {0, 0}, shape, {}, {1, 0}}}});
  return builder;
}

TEST_CASE("a declared transpose moves element by element, square or not", "[field][case-18]") {
  const auto value = [](const Tensor&, const Index& at, std::uint64_t) {
    return static_cast<std::uint64_t>(10 * at[0] + at[1]);
  };
  const Planned square = MustPlan(Transposed({3, 3}, {3, 3}).Json());
  const auto d = Received<std::int32_t>(square, "e/0", value);
  REQUIRE(d[1 * 3 + 2] == 21);
  REQUIRE(d[2 * 3 + 1] == 12);

  const Planned oblong = MustPlan(Transposed({2, 3}, {3, 2}).Json());
  REQUIRE(Received<std::int32_t>(oblong, "e/0", value) ==
          std::vector<std::int32_t>{0, 10, 1, 11, 2, 12});
}

TEST_CASE("a transpose is accepted exactly where the shape read through axes fits",
          "[field][case-18]") {
  REQUIRE(AnyMentions(MustRefuse(Transposed({2, 3}, {2, 3}).Json()), {"s", "e/0"}));
  // gpt-oss: fused [32,2880,5760] from [32,5760,2880]; without axes the shape does not fit.
  JobBuilder builder;
  builder.AddTensor("w", Dtype::kBf16, {2, 6, 3});
  builder.Trainer(0, "t0").Holds("w", {0, 0, 0}, {2, 6, 3});
  const bool with_axes = GENERATE(false, true);
  builder.Rollout("e", 0, "r0")
      .AddParam(
          {.name = "w",
           .shape = {2, 3, 6},
           .pieces = {{"w", {0, 0, 0}, {2, 6, 3}, {}, with_axes ? Index{0, 2, 1} : Index{}}}});
  if (with_axes) {
    REQUIRE(MustPlan(builder.Json()).plan.bytes == 72);
  } else {
    REQUIRE(AnyMentions(MustRefuse(builder.Json()), {"w", "e/0"}));
  }
}

TEST_CASE("with two engines of EP4 each rank gets its own two experts, 16 moves in all",
          "[field][case-22]") {
  const auto expert = [](int e) { return "experts." + std::to_string(e) + ".weight"; };
  JobBuilder builder;
  for (int e = 0; e < 8; ++e) builder.AddTensor(expert(e), Dtype::kBf16, {2, 2});
  for (int r = 0; r < 2; ++r) {
    builder.Trainer(r, "t0");
    for (int e = 4 * r; e < 4 * r + 4; ++e) builder.Holds(expert(e), {0, 0}, {2, 2});
  }
  for (const char* engine : {"engine0", "engine1"}) {
    for (int r = 0; r < 4; ++r) {
      ParamSpec stack{.name = "w13", .shape = {2, 2, 2}};
      for (int slot = 0; slot < 2; ++slot) {
        stack.pieces.push_back({expert(2 * r + slot), {0, 0}, {2, 2}, {slot, 0, 0}, {}});
      }
      builder.Rollout(engine, r, "r0").AddParam(stack);
    }
  }
  const Planned planned = MustPlan(builder.Json());
  REQUIRE(AllMoves(planned.plan).size() == 16);
  std::map<std::string, std::vector<std::string>> experts;
  for (const Move& move : AllMoves(planned.plan)) {
    experts[planned.job.layout(move.dst).name.ToString()].push_back(
        planned.job.tensor(move.tensor).name);
  }
  REQUIRE(experts.size() == 8);
  REQUIRE(experts["engine0/1"] == std::vector<std::string>{expert(2), expert(3)});
  REQUIRE(experts["engine1/3"] == std::vector<std::string>{expert(6), expert(7)});
}

TEST_CASE("ranges of experts that are backwards or out of bounds are refused by name",
          "[field][case-23]") {
  struct Range {
    std::int64_t lo;
    std::int64_t hi;
    std::string told;
  };
  const Range range = GENERATE(values<Range>(
      {{3, 1, "box.lo[0] is 3"}, {-1, 2, "box.lo[0] is -1"}, {2, 9, "box.hi[0] is 9"}}));
  JobBuilder builder;
  builder.AddTensor("experts", Dtype::kBf16, {8, 2});
  builder.Trainer(0, "t0").Holds("experts", {0, 0}, {8, 2});
  builder.Rollout("e", 0, "r0")
      .AddParam(
          {.name = "w", .shape = {8, 2}, .pieces = {{"experts", {range.lo, 0}, {range.hi, 2}}}});
  REQUIRE(AnyMentions(MustRefuse(builder.Json()), {"experts", "e/0", range.told}));
}

TEST_CASE("an empty range of experts is no experts", "[field][case-23]") {
  JobBuilder builder;
  builder.AddTensor("experts", Dtype::kBf16, {8, 2});
  builder.Trainer(0, "t0").Holds("experts", {0, 0}, {8, 2});
  builder.Rollout("e", 0, "r0").Holds("experts", {0, 0}, {8, 2});
  builder.Rollout("e", 1, "r0").Holds("experts", {3, 0}, {3, 2});
  const Planned planned = MustPlan(builder.Json());
  REQUIRE(AllMoves(planned.plan).size() == 1);
}

JobBuilder Uneven(std::int64_t declared_rows) {
  JobBuilder builder;
  builder.AddTensor("five", Dtype::kInt32, {declared_rows}).AddTensor("two", Dtype::kInt32, {2});
  const std::vector<std::pair<std::int64_t, std::int64_t>> five{{0, 3}, {3, 5}, {5, 5}, {5, 5}};
  const std::vector<std::pair<std::int64_t, std::int64_t>> two{{0, 1}, {1, 2}, {2, 2}, {2, 2}};
  for (std::size_t r = 0; r < 4; ++r) {
    builder.Trainer(static_cast<int>(r), "t0")
        .Holds("five", {five[r].first}, {five[r].second})
        .Holds("two", {two[r].first}, {two[r].second});
  }
  builder.Rollout("e", 0, "r0").Holds("five", {0}, {declared_rows}).Holds("two", {0}, {2});
  return builder;
}

TEST_CASE("uneven and empty shards are what they are declared as", "[field][case-42]") {
  const Planned planned = MustPlan(Uneven(5).Json());
  REQUIRE(RowsByWorker(planned, "five").at("e/0") == Rows(0, 5));
  REQUIRE(RowsByWorker(planned, "two").at("e/0") == Rows(0, 2));
  REQUIRE(EgressOf(planned, "policy/0") == 16);
  REQUIRE(EgressOf(planned, "policy/1") == 12);
  REQUIRE(EgressOf(planned, "policy/2") == 0);
  REQUIRE(EgressOf(planned, "policy/3") == 0);
}

TEST_CASE("shards that do not add up to the tensor are refused", "[field][case-42]") {
  REQUIRE(AnyMentions(MustRefuse(Uneven(6).Json()), {"five", "[5]..[6]", "e/0"}));
  ordered_json larger = Uneven(5).Json();
  larger["tensors"]["five"]["shape"] = {4};  // the shards are one row longer than the tensor
  REQUIRE(AnyMentions(MustRefuse(larger), {"five", "policy/1"}));
}

TEST_CASE("experts cut by EP on one dimension and FSDP on the next come together",
          "[field][case-43]") {
  JobBuilder builder;
  builder.AddTensor("experts", Dtype::kInt32, {4, 6, 2});
  for (int r = 0; r < 6; ++r) {
    const std::int64_t e = 2 * (r / 3);
    const std::int64_t h = 2 * (r % 3);
    builder.Trainer(r, "t0").Holds("experts", {e, h, 0}, {e + 2, h + 2, 2});
  }
  builder.Rollout("e", 0, "r0").Holds("experts", {0, 0, 0}, {4, 6, 2});
  const Planned planned = MustPlan(builder.Json());
  REQUIRE(AllMoves(planned.plan).size() == 6);
  const auto value = [](const Tensor&, const Index& at, std::uint64_t) {
    return static_cast<std::uint64_t>(100 * at[0] + 10 * at[1] + at[2]);
  };
  const auto received = Received<std::int32_t>(planned, "e/0", value);
  REQUIRE(received.size() == 48);
  std::size_t i = 0;
  for (std::int32_t e = 0; e < 4; ++e) {
    for (std::int32_t h = 0; h < 6; ++h) {
      for (std::int32_t k = 0; k < 2; ++k) REQUIRE(received[i++] == 100 * e + 10 * h + k);
    }
  }
}

TEST_CASE("replicated shards are as many slices as there are shards, each byte once",
          "[field][case-44]") {
  JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {16});
  for (int r = 0; r < 8; ++r) builder.Trainer(r, "t0").Holds("w", {4 * (r % 4)}, {4 * (r % 4) + 4});
  builder.Rollout("e", 0, "r0").Holds("w", {0}, {16});
  const Planned planned = MustPlan(builder.Json());
  REQUIRE(AllMoves(planned.plan).size() == 4);
  std::vector<int> writes(16, 0);
  for (const Move& move : AllMoves(planned.plan)) {
    REQUIRE(move.bytes == 4);
    test::ForEachIndex(move.box,
                       [&](const Index& at) { ++writes[static_cast<std::size_t>(at[0])]; });
  }
  REQUIRE(writes == std::vector<int>(16, 1));
}

TEST_CASE("eight tensors are not cut out of a stacked one without a rule", "[field][case-90]") {
  JobBuilder builder;
  builder.AddTensor("experts", Dtype::kBf16, {8, 4, 3});
  std::vector<std::string> wanted;
  for (int e = 0; e < 8; ++e) wanted.push_back("experts." + std::to_string(e));
  for (const std::string& name : wanted) builder.AddTensor(name, Dtype::kBf16, {4, 3});
  builder.Trainer(0, "t0").Holds("experts", {0, 0, 0}, {8, 4, 3});
  for (int r = 0; r < 4; ++r) {
    builder.Rollout("e", r, "r0");
    for (const std::string& name : wanted) builder.Holds(name, {0, 0}, {4, 3});
  }
  const Refusals refusals = MustRefuse(builder.Json());
  REQUIRE(TensorsOfKind(refusals, "uncovered") == wanted);
  REQUIRE(TensorsOfKind(refusals, "unused") == std::vector<std::string>{"experts"});
}

}  // namespace
}  // namespace wb
