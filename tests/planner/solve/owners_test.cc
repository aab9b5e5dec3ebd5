// Who owns an element: replicas, conflicts, and overlaps that are declared identical.
#include "planner/solve/owners.h"

#include <string>
#include <vector>

#include "planner/solve/validate.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using test::JobBuilder;
using test::MustRefuse;
using test::MustSolve;

TEST_CASE("trainers with the same box are replicas", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp32, {8, 2})
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0}, {8, 2})
                      .Trainer(1, "n0")
                      .Holds("w", {0, 0}, {8, 2})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0, 0}, {8, 2})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(AllMoves(plan).size() == 1);
  REQUIRE(plan.bytes == 64);
}

TEST_CASE("boxes of two trainers that overlap without being equal are a conflict naming both",
          "[planner][solve][refused]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp32, {8, 2})
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0}, {5, 2})
                      .Trainer(1, "n0")
                      .Holds("w", {4, 0}, {8, 2})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0, 0}, {8, 2})
                      .Build();
  const Refusals refusals = MustRefuse(job);
  REQUIRE(refusals.size() == 1);
  REQUIRE(refusals[0] ==
          Refusal{"conflict", "w", "policy/0",
                  "tensor w: box [0,0]..[5,2] of policy/0 (param w.0) and box [4,0]..[8,2] of "
                  "policy/1 (param w.0) overlap, want equal or disjoint boxes"});
}

TEST_CASE("two pieces of one trainer with a common element are a conflict naming both params",
          "[planner][solve][refused]") {
  const bool equal = GENERATE(false, true);
  const Job job =
      JobBuilder()
          .AddTensor("w", Dtype::kFp32, {8})
          .Trainer(0, "n0")
          .AddParam({.name = "a", .shape = {8}, .pieces = {{"w", {0}, {8}, {0}}}})
          .AddParam({.name = "b", .shape = {8}, .pieces = {{"w", {equal ? 0 : 6}, {8}, {0}}}})
          .Rollout("e", 0, "n1")
          .Holds("w", {0}, {8})
          .Build();
  const Refusals refusals = MustRefuse(job);
  REQUIRE(refusals.size() == 1);
  REQUIRE(refusals[0].kind == "conflict");
  REQUIRE(refusals[0].text.find("(param a)") != std::string::npos);
  REQUIRE(refusals[0].text.find("(param b)") != std::string::npos);
  REQUIRE(refusals[0].text.find("hold the same elements") != std::string::npos);
}

TEST_CASE("two params of one trainer that are the same memory are one owner", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("embed", Dtype::kBf16, {4, 2})
                      .Trainer(0, "n0")
                      .AddParam({.name = "embed",
                                 .shape = {4, 2},
                                 .pieces = {{"embed", {0, 0}, {4, 2}, {0, 0}}},
                                 .buffer = "flat"})
                      .AddParam({.name = "lm_head",
                                 .shape = {4, 2},
                                 .pieces = {{"embed", {0, 0}, {4, 2}, {0, 0}}},
                                 .buffer = "flat"})
                      .Rollout("e", 0, "n1")
                      .Holds("embed", {0, 0}, {4, 2})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(AllMoves(plan).size() == 1);
  REQUIRE(plan.bytes == 16);
}

TEST_CASE("a conflict in a tensor that nobody wants is still refused",
          "[planner][solve][refused]") {
  const Job job = JobBuilder()
                      .AddTensor("a", Dtype::kFp32, {4})
                      .AddTensor("b", Dtype::kFp32, {4})
                      .Trainer(0, "n0")
                      .Holds("a", {0}, {4})
                      .Holds("b", {0}, {3})
                      .Trainer(1, "n0")
                      .Holds("b", {2}, {4})
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0}, {4})
                      .Build();
  REQUIRE(MustRefuse(job).at(0).tensor == "b");
}

TEST_CASE("overlapping boxes under IDENTICAL are cut, and each element moves once",
          "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp32, {10}, true)
                      .Trainer(0, "n0")
                      .Holds("w", {0}, {6})
                      .Trainer(1, "n0")
                      .Holds("w", {4}, {10})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0}, {10})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(ValidatePlan(job, plan).ok());
  REQUIRE(plan.bytes == 40);
  // [4,6) goes to whoever has less to send; joined with its neighbour it is one move again.
  REQUIRE(AllMoves(plan).size() == 2);
  REQUIRE(plan.max_egress_bytes == 24);
  REQUIRE(plan.bound_bytes() == 40);  // all of it enters one NIC
}

TEST_CASE("pieces of one trainer may overlap under IDENTICAL", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kInt8, {6, 6}, true)
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0}, {6, 4})
                      .Holds("w", {0, 2}, {6, 6})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0, 0}, {6, 6})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(ValidatePlan(job, plan).ok());
  REQUIRE(plan.bytes == 36);
}

TEST_CASE("of very many conflicts of a tensor the first are told and the rest summed up",
          "[planner][solve][refused][limit]") {
  JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {1000});
  for (int r = 0; r < 100; ++r) builder.Trainer(r, "n0").Holds("w", {r}, {1000});
  builder.Rollout("e", 0, "n1").Holds("w", {0}, {1000});
  const Refusals refusals = MustRefuse(builder.Build());
  REQUIRE(refusals.size() == kMaxConflictsTold + 1);
  REQUIRE(refusals.back().text == "tensor w: more conflicts than the 16 told above");
}

TEST_CASE("a conflict does not hide that elements are missing as well",
          "[planner][solve][refused]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp32, {10})
                      .Trainer(0, "n0")
                      .Holds("w", {0}, {6})
                      .Trainer(1, "n0")
                      .Holds("w", {4}, {9})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0}, {10})
                      .Build();
  const Refusals refusals = MustRefuse(job);
  REQUIRE(refusals.size() == 2);
  REQUIRE(refusals[0].kind == "conflict");
  REQUIRE(refusals[1] == Refusal{"uncovered", "w", "e/0",
                                 "tensor w: box [9]..[10] is held by no trainer, wanted by e/0"});
}

}  // namespace
}  // namespace wb
