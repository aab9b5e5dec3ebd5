// Faults seen in the field, as far as planning meets them: what a layout file with the case's
// values is planned as, or why it is refused. Bytes move through memory by the slow walk of
// tests/support/byte_walk.h where a value says more than a box.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/lower/schedule.h"
#include "planner/solve/planner.h"
#include "planner/solve/validate.h"
#include "proto/convert.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using nlohmann::ordered_json;
using test::JobBuilder;
using test::ParamSpec;

struct Planned {
  Job job;
  Plan plan;
};

std::variant<Planned, Refusals> PlanFile(const ordered_json& file) {
  std::variant<LoadedJob, Refusals> loaded = JobFromJson(file.dump());
  if (auto* refusals = std::get_if<Refusals>(&loaded)) return std::move(*refusals);
  Job job = std::get<LoadedJob>(std::move(loaded)).job;
  std::variant<Plan, Refusals> solved = Solve(job);
  if (auto* refusals = std::get_if<Refusals>(&solved)) return std::move(*refusals);
  return Planned{std::move(job), std::get<Plan>(std::move(solved))};
}

Planned MustPlan(const ordered_json& file) {
  std::variant<Planned, Refusals> planned = PlanFile(file);
  if (const auto* refusals = std::get_if<Refusals>(&planned)) {
    for (const Refusal& refusal : *refusals) UNSCOPED_INFO(refusal.text);
    FAIL("the file is refused");
  }
  Planned done = std::get<Planned>(std::move(planned));
  const absl::Status valid = ValidatePlan(done.job, done.plan);
  INFO(valid);
  REQUIRE(valid.ok());
  return done;
}

Refusals MustRefuse(const ordered_json& file) {
  std::variant<Planned, Refusals> planned = PlanFile(file);
  if (std::holds_alternative<Planned>(planned)) FAIL("the file is accepted");
  return std::get<Refusals>(std::move(planned));
}

bool AnyMentions(const Refusals& refusals, const std::vector<std::string>& words) {
  return std::any_of(refusals.begin(), refusals.end(), [&](const Refusal& refusal) {
    return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return refusal.text.find(word) != std::string::npos;
    });
  });
}

std::vector<std::string> TensorsOfKind(const Refusals& refusals, const std::string& kind) {
  std::vector<std::string> tensors;
  for (const Refusal& refusal : refusals) {
    if (refusal.kind == kind) tensors.push_back(refusal.tensor);
  }
  return tensors;
}

// Per destination worker: the first indices (dimension 0) that land there, in the plan's order.
std::map<std::string, std::vector<std::int64_t>> RowsByWorker(const Planned& planned,
                                                              const std::string& tensor) {
  std::map<std::string, std::vector<std::int64_t>> rows;
  for (const Move& move : planned.plan.moves) {
    if (planned.job.tensor(move.tensor).name != tensor) continue;
    for (std::int64_t row = move.box.lo()[0]; row < move.box.hi()[0]; ++row) {
      rows[planned.job.layout(move.dst).name.ToString()].push_back(row);
    }
  }
  return rows;
}

std::vector<std::int64_t> Rows(std::int64_t lo, std::int64_t hi) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = lo; row < hi; ++row) rows.push_back(row);
  return rows;
}

std::uint64_t EgressOf(const Planned& planned, const std::string& worker) {
  std::uint64_t bytes = 0;
  for (const Move& move : planned.plan.moves) {
    if (planned.job.layout(move.src).name.ToString() == worker) bytes += move.bytes;
  }
  return bytes;
}

// The worker's first buffer after the plan has run, as elements of type T.
template <typename T>
std::vector<T> Received(const Planned& planned,
                        const std::string& worker,
                        const test::ElementValue& value) {
  const std::vector<test::Memory> memory =
      test::Execute(planned.job, planned.plan, kDefaultChunkBytes, value);
  const test::Bytes& bytes = memory[test::WorkerNamed(planned.job, worker).value()].front();
  std::vector<T> elements(bytes.size() / sizeof(T));
  std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
  return elements;
}

// Trainers hold equal rows of a tensor [rows, columns].
JobBuilder RowTrainers(const std::string& tensor, std::int64_t rows, std::int64_t columns, int n) {
  JobBuilder builder;
  builder.AddTensor(tensor, Dtype::kBf16, {rows, columns});
  for (int r = 0; r < n; ++r) {
    builder.Trainer(r, "t0").Holds(tensor, {rows * r / n, 0}, {rows * (r + 1) / n, columns});
  }
  return builder;
}

TEST_CASE("KV heads are replicated over more ranks than heads, each rank by its own head",
          "[field][case-4]") {
  JobBuilder builder = RowTrainers("k_proj", 512, 2, 4);
  for (int r = 0; r < 8; ++r) {
    builder.Rollout("e", r, "r0").Holds("k_proj", {128 * (r / 2), 0}, {128 * (r / 2) + 128, 2});
  }
  const Planned planned = MustPlan(builder.Json());
  const auto rows = RowsByWorker(planned, "k_proj");
  for (int r = 0; r < 8; ++r) {
    REQUIRE(rows.at("e/" + std::to_string(r)) == Rows(128 * (r / 2), 128 * (r / 2) + 128));
  }
}

TEST_CASE("heads cut in half are planned as declared, unless elements miss or have two owners",
          "[field][case-4]") {
  // 64 rows a rank: the file says so, and every element is there once.
  JobBuilder halves = RowTrainers("k_proj", 512, 2, 4);
  for (int r = 0; r < 8; ++r) {
    halves.Rollout("e", r, "r0").Holds("k_proj", {64 * r, 0}, {64 * r + 64, 2});
  }
  REQUIRE(MustPlan(halves.Json()).plan.bytes == 512 * 2 * 2);

  const auto trainers = [](std::int64_t step, std::int64_t extent) {
    JobBuilder builder;
    builder.AddTensor("k_proj", Dtype::kBf16, {512, 2});
    for (int r = 0; r < 8; ++r) {
      const std::int64_t lo = step * r;
      builder.Trainer(r, "t0").Holds("k_proj", {lo, 0},
                                     {std::min<std::int64_t>(512, lo + extent), 2});
    }
    builder.Rollout("e", 0, "r0").Holds("k_proj", {0, 0}, {512, 2});
    return builder.Json();
  };
  const Refusals missing = MustRefuse(trainers(64, 32));
  REQUIRE(AnyMentions(missing, {"k_proj", "[32,0]..[64,2]", "e/0"}));
  const Refusals doubly = MustRefuse(trainers(64, 128));
  REQUIRE(
      AnyMentions(doubly, {"k_proj", "policy/0", "policy/1", "[0,0]..[128,2]", "[64,0]..[192,2]"}));
}

TEST_CASE("a norm weight per KV head follows the heads, not the ranks", "[field][case-5]") {
  JobBuilder builder;
  builder.AddTensor("k_norm", Dtype::kFp32, {32});
  builder.Trainer(0, "t0").Holds("k_norm", {0}, {32});
  for (int r = 0; r < 16; ++r) {
    builder.Rollout("e", r, "r0").Holds("k_norm", {4 * (r / 2)}, {4 * (r / 2) + 4});
  }
  const Planned planned = MustPlan(builder.Json());
  const auto rows = RowsByWorker(planned, "k_norm");
  for (int r = 0; r < 16; ++r) {
    REQUIRE(rows.at("e/" + std::to_string(r)) == Rows(4 * (r / 2), 4 * (r / 2) + 4));
  }
  REQUIRE(rows.at("e/15") == std::vector<std::int64_t>{28, 29, 30, 31});
}

TEST_CASE("a norm weight cut into 2 elements a rank is refused where that leaves gaps",
          "[field][case-5]") {
  JobBuilder builder;
  builder.AddTensor("k_norm", Dtype::kFp32, {32});
  for (int r = 0; r < 8; ++r) builder.Trainer(r, "t0").Holds("k_norm", {4 * r}, {4 * r + 2});
  builder.Rollout("e", 0, "r0").Holds("k_norm", {0}, {32});
  REQUIRE(AnyMentions(MustRefuse(builder.Json()), {"k_norm", "[2]..[4]", "e/0"}));
}

JobBuilder GateUp() {
  JobBuilder builder;
  builder.AddTensor("gate_up", Dtype::kInt32, {8});
  builder.Trainer(0, "t0").Holds("gate_up", {0}, {8});
  for (int r = 0; r < 4; ++r) builder.Rollout("e", r, "r0").Holds("gate_up", {2 * r}, {2 * r + 2});
  return builder;
}

TEST_CASE("a rank that is left out is refused, never taken for 0", "[field][case-6]") {
  ordered_json file = GateUp().Json();
  const int worker = GENERATE(1, 3);  // e/0 and e/2
  file["workers"][static_cast<std::size_t>(worker)].erase("rank");
  REQUIRE(AnyMentions(MustRefuse(file), {"rank"}));
}

TEST_CASE("with ranks given, four destinations differ pairwise and hold all rows",
          "[field][case-6]") {
  const Planned planned = MustPlan(GateUp().Json());
  const auto value = [](const Tensor&, const Index& at, std::uint64_t) {
    return static_cast<std::uint64_t>(at[0]);
  };
  std::set<std::vector<std::int32_t>> buffers;
  std::set<std::int32_t> all;
  for (int r = 0; r < 4; ++r) {
    const auto buffer = Received<std::int32_t>(planned, "e/" + std::to_string(r), value);
    buffers.insert(buffer);
    all.insert(buffer.begin(), buffer.end());
  }
  REQUIRE(buffers.size() == 4);
  REQUIRE(all == std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("layers that no stage holds are named, exactly those", "[field][case-11]") {
  const auto layer = [](int number) {
    return "model.layers." + std::to_string(number) + ".mlp.gate.weight";
  };
  JobBuilder builder;
  for (int l = 0; l < 30; ++l) builder.AddTensor(layer(l), Dtype::kBf16, {4});
  for (int r = 0; r < 4; ++r) {
    builder.Trainer(r, "t0");
    for (int l = 7 * r; l < 7 * r + 7; ++l) builder.Holds(layer(l), {0}, {4});
  }
  for (int r = 0; r < 2; ++r) {
    builder.Rollout("e", r, "r0");
    for (int l = 0; l < 30; ++l) builder.Holds(layer(l), {0}, {4});
  }
  const Refusals refusals = MustRefuse(builder.Json());
  REQUIRE(refusals.size() == 2);
  REQUIRE(TensorsOfKind(refusals, "uncovered") == std::vector<std::string>{layer(28), layer(29)});
  REQUIRE(refusals[0].text ==
          "tensor " + layer(28) + " is held by no trainer, wanted by e/0 and 1 more workers");
}

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

TEST_CASE("names that do not meet are told in full from both sides", "[field][case-16]") {
  const std::vector<std::string> sources{"decoder.layers.0.self_attention.linear_qkv",
                                         "visual.decoder.layers.0.linear_fc1",
                                         "visual.decoder.layers.0.linear_fc2", "visual.norm"};
  const std::vector<std::string> wanted{"visual.blocks.0.attn.qkv", "visual.blocks.0.mlp.fc1",
                                        "visual.blocks.0.mlp.fc2", "visual.patch_norm"};
  JobBuilder builder;
  for (const std::string& name : sources) builder.AddTensor(name, Dtype::kBf16, {4});
  for (const std::string& name : wanted) builder.AddTensor(name, Dtype::kBf16, {4});
  builder.AddTensor("shared", Dtype::kBf16, {4});
  builder.Trainer(0, "t0").Holds("shared", {0}, {4});
  for (const std::string& name : sources) builder.Holds(name, {0}, {4});
  builder.Rollout("e", 0, "r0").Holds("shared", {0}, {4});
  for (const std::string& name : wanted) builder.Holds(name, {0}, {4});
  const Refusals refusals = MustRefuse(builder.Json());
  REQUIRE(refusals.size() == 8);
  REQUIRE(TensorsOfKind(refusals, "uncovered") == wanted);
  REQUIRE(TensorsOfKind(refusals, "unused") == sources);
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
  REQUIRE(planned.plan.moves.size() == 16);
  std::map<std::string, std::vector<std::string>> experts;
  for (const Move& move : planned.plan.moves) {
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
  REQUIRE(planned.plan.moves.size() == 1);
}

TEST_CASE("a tied head is moved once as the embedding it is, and real heads are moved",
          "[field][case-32]") {
  JobBuilder builder;
  builder.AddTensor("embed", Dtype::kBf16, {8, 2})
      .AddTensor("mtp.lm_head", Dtype::kBf16, {8, 2})
      .AddAlias("lm_head", "embed");
  builder.Trainer(0, "t0")
      .AddParam({.name = "embed",
                 .shape = {8, 2},
                 .pieces = {{"embed", {0, 0}, {8, 2}}},
                 .buffer = "embed"})
      .AddParam({.name = "lm_head",
                 .shape = {8, 2},
                 .pieces = {{"lm_head", {0, 0}, {8, 2}}},
                 .buffer = "embed"})
      .Holds("mtp.lm_head", {0, 0}, {8, 2});
  builder.Rollout("e", 0, "r0").Holds("embed", {0, 0}, {8, 2}).Holds("mtp.lm_head", {0, 0}, {8, 2});
  const Planned planned = MustPlan(builder.Json());
  REQUIRE(planned.plan.bytes == 64);
  REQUIRE(planned.plan.moves.size() == 2);
  REQUIRE(planned.plan.unused.empty());
}

JobBuilder FourParamsAndABuffer(bool trained, bool local) {
  JobBuilder builder;
  const std::vector<std::string> params{"a", "b", "c", "d"};
  for (const std::string& name : params) builder.AddTensor(name, Dtype::kFp32, {4});
  builder.AddTensor("rope.inv_freq", Dtype::kFp32, {4});
  builder.Trainer(0, "t0");
  for (const std::string& name : params) builder.Holds(name, {0}, {4});
  if (trained) builder.Holds("rope.inv_freq", {0}, {4});
  builder.Rollout("e", 0, "r0");
  for (const std::string& name : params) builder.Holds(name, {0}, {4});
  ParamSpec buffer{.name = "rope.inv_freq", .shape = {4}, .local = local};
  if (!local) buffer.pieces = {{"rope.inv_freq", {0}, {4}}};
  return builder.AddParam(buffer);
}

TEST_CASE("a persistent buffer that nobody publishes is named, unless it is local",
          "[field][case-38]") {
  const Refusals refusals = MustRefuse(FourParamsAndABuffer(false, false).Json());
  REQUIRE(TensorsOfKind(refusals, "uncovered") == std::vector<std::string>{"rope.inv_freq"});
  REQUIRE(refusals.size() == 1);
  REQUIRE(MustPlan(FourParamsAndABuffer(false, true).Json()).plan.moves.size() == 4);
  REQUIRE(MustPlan(FourParamsAndABuffer(true, false).Json()).plan.moves.size() == 5);
}

TEST_CASE("a plan of nothing is refused, and a large tensor is one run a pair",
          "[field][case-40]") {
  JobBuilder disjoint;
  disjoint.AddTensor("theirs", Dtype::kBf16, {4}).AddTensor("ours", Dtype::kBf16, {4});
  disjoint.Trainer(0, "t0").Holds("theirs", {0}, {4});
  disjoint.Rollout("engine0", 0, "r0").Holds("ours", {0}, {4});
  REQUIRE(AnyMentions(MustRefuse(disjoint.Json()), {"0 bytes planned for engine0/0"}));

  JobBuilder large;
  large.AddTensor("w", Dtype::kBf16, {150'000, 1'024});
  large.Trainer(0, "t0").Holds("w", {0, 0}, {150'000, 1'024});
  large.Rollout("e", 0, "r0").Holds("w", {0, 0}, {150'000, 1'024});
  const Planned planned = MustPlan(large.Json());
  REQUIRE(planned.plan.moves.size() == 1);
  const absl::StatusOr<LocalStream> stream =
      LowerStream(planned.plan.moves, planned.job.tensors, planned.job.layouts[0],
                  StreamEnd::kDestination, kDefaultChunkBytes);
  REQUIRE(stream.ok());
  REQUIRE(stream->chunks.size() == 293);  // 307,200,000 bytes, 1 MiB each
  REQUIRE(std::all_of(stream->chunks.begin(), stream->chunks.end(),
                      [](const LocalChunk& chunk) { return chunk.contiguous(); }));
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
  REQUIRE(planned.plan.moves.size() == 6);
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
  REQUIRE(planned.plan.moves.size() == 4);
  std::vector<int> writes(16, 0);
  for (const Move& move : planned.plan.moves) {
    REQUIRE(move.bytes == 4);
    test::ForEachIndex(move.box,
                       [&](const Index& at) { ++writes[static_cast<std::size_t>(at[0])]; });
  }
  REQUIRE(writes == std::vector<int>(16, 1));
}

JobBuilder RoutingBias(const std::string& rollout_dtype) {
  JobBuilder builder;
  builder.AddTensor("bias", Dtype::kFp32, {3});
  builder.Trainer(0, "t0").Holds("bias", {0}, {3});
  builder.Rollout("e", 0, "r0")
      .AddParam({.name = "e_score_correction_bias",
                 .shape = {3},
                 .pieces = {{"bias", {0}, {3}}},
                 .dtype = rollout_dtype});
  return builder;
}

TEST_CASE("a routing bias keeps its bits, and a destination of another dtype is refused",
          "[field][case-46]") {
  const std::vector<std::uint32_t> bits{0x40E000D2, 0x40DA8F5C, 0x40DAE148};
  const Planned planned = MustPlan(RoutingBias("FP32").Json());
  const auto value = [&](const Tensor&, const Index& at, std::uint64_t) {
    return std::uint64_t{bits[static_cast<std::size_t>(at[0])]};
  };
  REQUIRE(Received<std::uint32_t>(planned, "e/0", value) == bits);
  REQUIRE(AnyMentions(MustRefuse(RoutingBias("BF16").Json()), {"bias", "FP32", "BF16", "e/0"}));
}

JobBuilder Indexer(Dtype source, const std::string& destination) {
  JobBuilder builder;
  builder.AddTensor("wk", source, {128, 6144});
  builder.Trainer(0, "t0").Holds("wk", {0, 0}, {128, 6144});
  builder.Rollout("e", 0, "r0")
      .AddParam({.name = "fused_wk",
                 .shape = {256, 6144},
                 .pieces = {{"wk", {0, 0}, {128, 6144}}},
                 .dtype = destination});
  return builder;
}

TEST_CASE("a quantised source for a bf16 destination is refused; bf16 fills its own rows alone",
          "[field][case-51]") {
  REQUIRE(AnyMentions(MustRefuse(Indexer(Dtype::kFp8E4m3, "BF16").Json()),
                      {"wk", "FP8_E4M3", "BF16", "e/0"}));
  const Planned planned = MustPlan(Indexer(Dtype::kBf16, "BF16").Json());
  REQUIRE(planned.plan.bytes == 128 * 6144 * 2);
  const auto value = [](const Tensor&, const Index&, std::uint64_t linear) {
    return (linear & 0x7FFF) | 1;
  };
  const auto received = Received<std::uint16_t>(planned, "e/0", value);
  const auto middle = received.begin() + 128 * 6144;
  REQUIRE(std::none_of(received.begin(), middle, [](std::uint16_t v) { return v == 0xA5A5; }));
  REQUIRE(std::all_of(middle, received.end(), [](std::uint16_t v) { return v == 0xA5A5; }));
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

// Names "a" and "b" on the same memory of the trainer.
JobBuilder SharedTensors() {
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kBf16, {8, 2})
      .AddTensor("b", Dtype::kBf16, {8, 2})
      .AddTensor("c", Dtype::kBf16, {4, 2});
  builder.Trainer(0, "t0")
      .AddParam({.name = "a", .shape = {8, 2}, .pieces = {{"a", {0, 0}, {8, 2}}}, .buffer = "flat"})
      .AddParam({.name = "b", .shape = {8, 2}, .pieces = {{"b", {0, 0}, {8, 2}}}, .buffer = "flat"})
      .AddParam({.name = "c",
                 .shape = {4, 2},
                 .pieces = {{"c", {0, 0}, {4, 2}}},
                 .buffer = "flat",
                 .offset_bytes = 16});
  return builder;
}

TEST_CASE("two names of one memory travel once and are both covered", "[field][case-146]") {
  JobBuilder builder = SharedTensors();
  builder.Rollout("e", 0, "r0").Holds("a", {0, 0}, {8, 2}).Holds("b", {0, 0}, {8, 2});
  const Planned planned = MustPlan(builder.Json());
  REQUIRE(planned.plan.bytes == 32);
  REQUIRE(planned.plan.ties.size() == 1);
  const std::vector<test::Memory> memory =
      test::Execute(planned.job, planned.plan, 7, test::HashValue);
  const test::Memory& received = memory[test::WorkerNamed(planned.job, "e/0").value()];
  REQUIRE(received.at(0) == received.at(1));
  REQUIRE(received.at(0) == memory[test::WorkerNamed(planned.job, "policy/0").value()].at(0));
}

TEST_CASE("two destinations that overlap in memory are refused", "[field][case-146]") {
  JobBuilder builder = SharedTensors();
  builder.Rollout("e", 0, "r0")
      .AddParam({.name = "a", .shape = {8, 2}, .pieces = {{"a", {0, 0}, {8, 2}}}, .buffer = "flat"})
      .AddParam({.name = "c",
                 .shape = {4, 2},
                 .pieces = {{"c", {0, 0}, {4, 2}}},
                 .buffer = "flat",
                 .offset_bytes = 16});
  REQUIRE(AnyMentions(MustRefuse(builder.Json()), {"e/0", "flat"}));
}

}  // namespace
}  // namespace wb
