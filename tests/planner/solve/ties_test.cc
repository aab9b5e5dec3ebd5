// Tensors that are one in the trainers' memory travel once.
#include <string>
#include <vector>

#include "planner/solve/validate.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using test::JobBuilder;
using test::MustSolve;
using test::TensorNamed;

// Two trainers hold rows of "a" and "b" as views of one buffer; `offset` moves b's view of rank 1.
JobBuilder Trainers(std::uint64_t offset = 0) {
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp32, {4, 2}).AddTensor("b", Dtype::kFp32, {4, 2});
  for (int r = 0; r < 2; ++r) {
    builder.Trainer(r, "n0");
    for (const char* name : {"a", "b"}) {
      builder.AddParam({.name = name,
                        .shape = {2, 2},
                        .pieces = {{name, {2 * r, 0}, {2 * r + 2, 2}, {0, 0}}},
                        .buffer = "flat",
                        .offset_bytes = r == 1 && name[0] == 'b' ? offset : 0});
    }
  }
  return builder;
}

TEST_CASE("two tensors of one storage travel once and land in both", "[planner][solve]") {
  const Job job = Trainers()
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0, 0}, {4, 2})
                      .Holds("b", {0, 0}, {4, 2})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(plan.ties == std::vector<Tie>{{TensorNamed(job, "b"), TensorNamed(job, "a")}});
  REQUIRE(plan.bytes == 32);
  REQUIRE(plan.unused.empty());
  REQUIRE(ValidatePlan(job, plan).ok());
}

TEST_CASE("a tie needs one storage on every trainer", "[planner][solve]") {
  const Job job = Trainers(16)
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0, 0}, {4, 2})
                      .Holds("b", {0, 0}, {4, 2})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(plan.ties.empty());
  REQUIRE(plan.bytes == 64);
}

TEST_CASE("of tied tensors only the wanted one is named, and the other is not unused",
          "[planner][solve]") {
  const Job job = Trainers().Rollout("e", 0, "n1").Holds("b", {0, 0}, {4, 2}).Build();
  const Plan plan = MustSolve(job);
  REQUIRE(plan.ties.empty());
  REQUIRE(plan.unused.empty());
  REQUIRE(AllMoves(plan).front().tensor == TensorNamed(job, "b"));
}

TEST_CASE("tied tensors cut differently at a rollout still travel once", "[planner][solve]") {
  const Job job = Trainers()
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0, 0}, {4, 2})
                      .Holds("b", {1, 0}, {3, 1})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(plan.bytes == 32);
  REQUIRE(ValidatePlan(job, plan).ok());
}

TEST_CASE("a tensor in several params of a destination moves once", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("embed", Dtype::kBf16, {4, 2})
                      .Trainer(0, "n0")
                      .Holds("embed", {0, 0}, {4, 2})
                      .Rollout("e", 0, "n1")
                      .Holds("embed", {0, 0}, {4, 2})
                      .Holds("embed", {0, 0}, {4, 2})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(AllMoves(plan).size() == 1);
  REQUIRE(plan.bytes == 16);
  REQUIRE(ValidatePlan(job, plan).ok());
}

}  // namespace
}  // namespace wb
