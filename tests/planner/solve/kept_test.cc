// Plans that are made with the plan before as an input.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "planner/solve/validate.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::JobBuilder;
using test::MustSolve;

constexpr int kRounds = 200;

Plan SolveAfter(const Job& job, const Job& before, const Plan& plan) {
  std::variant<Plan, Refusals> solved = Solve(job, PreviousPlan{before, plan});
  REQUIRE(std::holds_alternative<Plan>(solved));
  return std::get<Plan>(std::move(solved));
}

std::set<std::string> Engines(const Job& job) {
  std::set<std::string> engines;
  for (const Layout& layout : job.layouts) {
    if (layout.role == Role::kRollout) engines.insert(layout.name.group);
  }
  return engines;
}

Job Without(Job job, const std::string& group) {
  std::erase_if(job.layouts, [&](const Layout& layout) { return layout.name.group == group; });
  return job;
}

// Move by move, and what daemons know them by.
bool SameGroup(const Job& job,
               const Plan& plan,
               const Job& other_job,
               const Plan& other,
               const std::string& name) {
  const PlanGroup& group = *plan.FindGroup(name);
  const PlanGroup& other_group = *other.FindGroup(name);
  return group.fingerprint == other_group.fingerprint &&
         test::MoveLines(job, MovesOf(plan, group)) ==
             test::MoveLines(other_job, MovesOf(other, other_group));
}

bool AllSame(const Job& job, const Plan& plan, const Job& before, const Plan& plan_before) {
  const std::set<std::string> now = Engines(job);
  const std::set<std::string> then = Engines(before);
  return std::all_of(then.begin(), then.end(), [&](const std::string& engine) {
    return !now.contains(engine) || SameGroup(job, plan, before, plan_before, engine);
  });
}

test::JobLimits Limits(bool large) {
  test::JobLimits limits;
  limits.engines = 4;
  if (large) limits.extent = 3000;  // slices of a few MiB, so that some are split
  return limits;
}

// What holds for a plan with one before: it is valid, and either the groups that stay keep theirs,
// or keeping would have left the fullest NIC above 1.02 x the bound and fuller than it is now.
void CheckKeeps(const Job& job, const Plan& plan, const Job& before, const Plan& plan_before) {
  const absl::Status valid = ValidatePlan(job, plan);
  INFO(valid);
  REQUIRE(valid.ok());
  const Plan anew = MustSolve(job);
  REQUIRE(plan.bounds == anew.bounds);
  const bool near = 50 * (plan.max_nic_bytes() - plan.bound_bytes()) <= plan.bound_bytes();
  if (!AllSame(job, plan, before, plan_before)) {
    REQUIRE(plan == anew);
  } else if (!near) {
    REQUIRE(plan.max_nic_bytes() <= anew.max_nic_bytes());
  }
}

TEST_CASE("groups that stay keep their moves when a group joins or leaves",
          "[planner][solve][property]") {
  const bool large = GENERATE(false, true);
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " large " << large);
  std::mt19937_64 rng = test::TestRng(round);
  const Job whole = test::RandomJob(rng, Limits(large));
  const std::set<std::string> engines = Engines(whole);
  if (engines.size() < 2) return;
  const Job fewer = Without(whole, *engines.begin());
  const Plan of_whole = MustSolve(whole);
  const Plan of_fewer = MustSolve(fewer);
  CheckKeeps(whole, SolveAfter(whole, fewer, of_fewer), fewer, of_fewer);
  CheckKeeps(fewer, SolveAfter(fewer, whole, of_whole), whole, of_whole);
}

TEST_CASE("a plan before whose quotas do not fill what a group gets is not kept",
          "[planner][solve]") {
  std::mt19937_64 rng(1);
  const Job job = test::RandomJob(rng, Limits(false));
  const Plan plan = MustSolve(job);
  Plan other = plan;
  for (PlanGroup& group : other.groups) {
    if (!group.quotas.empty()) group.quotas.back().bytes /= 2;
  }
  REQUIRE(other != plan);
  REQUIRE(SolveAfter(job, job, other) == plan);
}

TEST_CASE("a job that has not changed keeps its plan", "[planner][solve][property]") {
  const int round = GENERATE(range(0, 50));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);
  REQUIRE(SolveAfter(job, job, plan) == plan);
}

TEST_CASE("what joins is routed on top of the load that stays", "[planner][solve]") {
  JobBuilder builder;
  builder.AddTensor("b", Dtype::kFp32, {8}).AddTensor("c", Dtype::kFp32, {8});
  builder.Trainer(0, "t0").Holds("b", {0}, {8}).Holds("c", {0}, {8});
  builder.Trainer(1, "t1").Holds("b", {0}, {8}).Holds("c", {0}, {8});
  builder.Rollout("e1", 0, "r1").Holds("b", {0}, {8});
  const Job before = builder.Build();
  const Plan plan_before = MustSolve(before);

  // Ids of tensors and workers are others now.
  builder.AddTensor("a", Dtype::kFp32, {8}, true);
  builder.Rollout("e0", 0, "r0").Holds("c", {0}, {8});
  const Job job = builder.Build();
  REQUIRE(job.tensors.size() > before.tensors.size());
  const Plan plan = SolveAfter(job, before, plan_before);
  REQUIRE(ValidatePlan(job, plan).ok());
  REQUIRE(SameGroup(job, plan, before, plan_before, "e1"));
  REQUIRE(plan.max_egress_bytes == 32);
  REQUIRE(plan.bound_bytes() == 32);
}

TEST_CASE("all is routed anew where keeping would overload a NIC", "[planner][solve]") {
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp32, {8}).AddTensor("b", Dtype::kFp32, {8});
  builder.Trainer(0, "t0").Holds("a", {0}, {8});
  builder.Trainer(1, "t1").Holds("a", {0}, {8});
  builder.Rollout("e0", 0, "r0").Holds("a", {0}, {8});
  const Job half = builder.Build();
  const WorkerIndex sender = AllMoves(MustSolve(half)).at(0).src;
  const int only = half.layout(sender).name.rank;

  // Whoever sends `a` is the only one that holds `b`.
  JobBuilder more;
  more.AddTensor("a", Dtype::kFp32, {8}).AddTensor("b", Dtype::kFp32, {8});
  for (int rank = 0; rank < 2; ++rank) {
    more.Trainer(rank, "t" + std::to_string(rank)).Holds("a", {0}, {8});
    if (rank == only) more.Holds("b", {0}, {8});
  }
  more.Rollout("e0", 0, "r0").Holds("a", {0}, {8});
  more.Rollout("e1", 0, "r1").Holds("b", {0}, {8});
  const Job job = more.Build();
  const Job before = Without(job, "e1");
  Plan plan_before = MustSolve(before);
  plan_before.groups.at(0).quotas.at(0).src =
      test::WorkerNamed(before, "policy/" + std::to_string(only));
  const Plan plan = SolveAfter(job, before, plan_before);
  REQUIRE(plan == MustSolve(job));
  REQUIRE(plan.max_egress_bytes == 32);
}

TEST_CASE("nothing is kept when a trainer holds something else", "[planner][solve]") {
  const auto make = [](std::int64_t cut) {
    JobBuilder builder;
    builder.AddTensor("a", Dtype::kFp32, {8});
    builder.Trainer(0, "t0").Holds("a", {0}, {cut});
    builder.Trainer(1, "t1").Holds("a", {cut}, {8});
    builder.Rollout("e0", 0, "r0").Holds("a", {0}, {8});
    return builder.Build();
  };
  const Job before = make(4);
  const Job job = make(6);
  REQUIRE(SolveAfter(job, before, MustSolve(before)) == MustSolve(job));
}

TEST_CASE("a group's fingerprint speaks of that group alone, nodes and tensors included",
          "[planner][solve]") {
  const auto make = [](Dtype dtype, const std::string& node, bool other) {
    JobBuilder builder;
    builder.AddTensor("a", dtype, {8});
    builder.Trainer(0, "t0").Holds("a", {0}, {8});
    builder.Rollout("e0", 0, node).Holds("a", {0}, {8});
    if (other) builder.Rollout("e1", 0, "r1").Holds("a", {0}, {8});
    return MustSolve(builder.Build());
  };
  const Plan plan = make(Dtype::kFp32, "r0", false);
  const Fingerprint print = plan.FindGroup("e0")->fingerprint;
  const Plan with_other = make(Dtype::kFp32, "r0", true);
  REQUIRE(with_other.FindGroup("e0")->fingerprint == print);
  REQUIRE(with_other.fingerprint != plan.fingerprint);
  REQUIRE(make(Dtype::kFp32, "r9", false).FindGroup("e0")->fingerprint != print);
  REQUIRE(make(Dtype::kInt32, "r0", false).FindGroup("e0")->fingerprint != print);
  REQUIRE(plan.FindGroup("e1") == nullptr);
}

TEST_CASE("a tie that only another group wants is not told to a group", "[planner][solve]") {
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp32, {4}).AddTensor("b", Dtype::kFp32, {4});
  builder.Trainer(0, "t0")
      .AddParam({.name = "a", .shape = {4}, .pieces = {{"a", {0}, {4}}}, .buffer = "flat"})
      .AddParam({.name = "b", .shape = {4}, .pieces = {{"b", {0}, {4}}}, .buffer = "flat"});
  builder.Rollout("e0", 0, "r0").Holds("a", {0}, {4});
  builder.Rollout("e1", 0, "r1").Holds("b", {0}, {4});
  const Job job = builder.Build();
  const Plan plan = MustSolve(job);
  REQUIRE(plan.ties.size() == 1);
  REQUIRE(plan.FindGroup("e0")->ties.empty());
  REQUIRE(plan.FindGroup("e1")->ties == plan.ties);

  // Alone, e1's bytes travel under their own name: keeping that would contradict the tie.
  const Job alone = Without(job, "e0");
  const Plan after = SolveAfter(job, alone, MustSolve(alone));
  REQUIRE(ValidatePlan(job, after).ok());
  REQUIRE(after == plan);
}

}  // namespace
}  // namespace wb
