// What no trainer can serve is told, all of it, before a byte moves.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using test::JobBuilder;
using test::MustRefuse;
using test::MustSolve;
using test::Texts;

TEST_CASE("a gap between trainers is named with its box", "[planner][solve][refused]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp32, {8, 4})
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0}, {3, 4})
                      .Trainer(1, "n0")
                      .Holds("w", {5, 0}, {8, 4})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0, 0}, {8, 2})
                      .Build();
  REQUIRE(
      Texts(MustRefuse(job)) ==
      std::vector<std::string>{"tensor w: box [3,0]..[5,2] is held by no trainer, wanted by e/0"});
}

TEST_CASE("a tensor that many workers miss is one reason", "[planner][solve][refused]") {
  JobBuilder builder;
  builder.AddTensor("here", Dtype::kFp32, {4}).AddTensor("missing", Dtype::kFp32, {4});
  builder.Trainer(0, "n0").Holds("here", {0}, {4});
  for (int r = 0; r < 3; ++r) {
    builder.Rollout("e", r, "n1").Holds("here", {0}, {4}).Holds("missing", {0}, {4});
  }
  REQUIRE(Texts(MustRefuse(builder.Build())) ==
          std::vector<std::string>{
              "tensor missing is held by no trainer, wanted by e/0 and 2 more workers"});
}

TEST_CASE("a rollout worker that wants nothing that exists is named", "[planner][solve][refused]") {
  const Job job = JobBuilder()
                      .AddTensor("a", Dtype::kFp32, {4})
                      .AddTensor("b", Dtype::kFp32, {4})
                      .Trainer(0, "n0")
                      .Holds("a", {0}, {4})
                      .Rollout("e", 0, "n1")
                      .Holds("b", {0}, {4})
                      .Build();
  const Refusals refusals = MustRefuse(job);
  REQUIRE(refusals.size() == 3);
  REQUIRE(refusals[0].kind == "uncovered");
  REQUIRE(refusals[1].kind == "empty");
  REQUIRE(refusals[1].worker == "e/0");
  REQUIRE(refusals[1].text.find("0 bytes planned for e/0") == 0);
  REQUIRE(refusals[2].kind == "unused");
  REQUIRE(refusals[2].tensor == "a");
}

TEST_CASE("a rollout worker whose params have elements but no pieces is refused",
          "[planner][solve][refused]") {
  const bool local = GENERATE(false, true);
  const Job job = JobBuilder()
                      .AddTensor("a", Dtype::kFp32, {4})
                      .Trainer(0, "n0")
                      .Holds("a", {0}, {4})
                      .Rollout("draft", 0, "n1")
                      .AddParam({.name = "frozen", .shape = {4}, .local = local})
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0}, {4})
                      .Build();
  if (local) {
    REQUIRE(MustSolve(job).bytes == 16);
    return;
  }
  const Refusals refusals = MustRefuse(job);
  REQUIRE(refusals.size() == 1);
  REQUIRE(refusals[0].kind == "empty");
  REQUIRE(refusals[0].worker == "draft/0");
}

TEST_CASE("a worker without elements registers and is planned nothing", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("a", Dtype::kFp32, {2})
                      .Trainer(0, "n0")
                      .Holds("a", {0}, {2})
                      .Trainer(1, "n0")
                      .Holds("a", {2}, {2})
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0}, {2})
                      .Rollout("e", 1, "n1")
                      .Holds("a", {2}, {2})
                      .Rollout("e", 2, "n1")
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(AllMoves(plan).size() == 1);
  REQUIRE(plan.bytes == 8);
}

TEST_CASE("a source that nobody wants is noted, not refused", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("a", Dtype::kFp32, {2})
                      .AddTensor("optimizer", Dtype::kFp32, {2})
                      .Trainer(0, "n0")
                      .Holds("a", {0}, {2})
                      .Holds("optimizer", {0}, {2})
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0}, {2})
                      .Build();
  REQUIRE(MustSolve(job).unused == std::vector<TensorId>{test::TensorNamed(job, "optimizer")});
}

TEST_CASE("more bytes than 63 bits can count are refused, not wrapped around",
          "[planner][solve][refused][limit]") {
  const std::int64_t elements = std::int64_t{1} << 59;  // of 8 bytes
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp64, {elements});
  builder.Trainer(0, "n0").Holds("a", {0}, {elements});
  for (int r = 0; r < 3; ++r) builder.Rollout("e", r, "n1").Holds("a", {0}, {elements});
  const Refusals refusals = MustRefuse(builder.Build());
  REQUIRE(refusals.size() == 1);
  REQUIRE(refusals[0].kind == "limit");
}

TEST_CASE("destination boxes that overlap beyond counting are refused",
          "[planner][solve][refused][limit]") {
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kInt8, Index(8, 40));
  builder.Trainer(0, "n0").Holds("a", Index(8, 0), Index(8, 40));
  builder.Rollout("e", 0, "n1");
  for (std::size_t dim = 0; dim < 8; ++dim) {
    for (std::int64_t i = 0; i < 10; ++i) {
      Index lo(8, 0);
      Index hi(8, 40);
      lo[dim] = 2 * i;
      hi[dim] = 2 * i + 1;
      builder.Holds("a", lo, hi);
    }
  }
  const Refusals refusals = MustRefuse(builder.Build());
  REQUIRE(std::any_of(refusals.begin(), refusals.end(),
                      [](const Refusal& r) { return r.kind == "limit" && r.worker == "e/0"; }));
}

}  // namespace
}  // namespace wb
