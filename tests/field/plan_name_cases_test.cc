// Faults seen in the field, as far as planning meets them: what a layout file with the case's
// values is planned as, or why it is refused. Bytes move through memory by the slow walk of
// tests/support/byte_walk.h where a value says more than a box.
// Here: names, dtypes and shared memory.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/lower/schedule.h"
#include "tests/field/plan_fixture.h"
#include "tests/support/allocation_count.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using test::AnyMentions;
using test::JobBuilder;
using test::MustPlan;
using test::MustRefuse;
using test::ParamSpec;
using test::Planned;
using test::Received;
using test::TensorsOfKind;

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
  REQUIRE(AllMoves(planned.plan).size() == 2);
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
  REQUIRE(AllMoves(MustPlan(FourParamsAndABuffer(false, true).Json()).plan).size() == 4);
  REQUIRE(AllMoves(MustPlan(FourParamsAndABuffer(true, false).Json()).plan).size() == 5);
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
  const std::uint64_t before = test::AllocatedBytes();
  const Planned planned = MustPlan(large.Json());
  REQUIRE(AllMoves(planned.plan).size() == 1);
  const absl::StatusOr<LocalStream> stream =
      LowerStream(AllMoves(planned.plan), planned.job.tensors, planned.job.layouts[0],
                  StreamEnd::kDestination, kDefaultChunkBytes);
  REQUIRE(stream.ok());
  REQUIRE(stream->chunks.size() == 293);  // 307,200,000 bytes, 1 MiB each
  REQUIRE(std::all_of(stream->chunks.begin(), stream->chunks.end(),
                      [](const LocalChunk& chunk) { return chunk.contiguous(); }));
  // From the text of the file to the chunks.
  REQUIRE(test::AllocatedBytes() - before < 1 << 20);
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
