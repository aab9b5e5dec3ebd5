// Plans in which rollouts pass on what they have received.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "planner/solve/validate.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/canonical_job.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::MustSolve;

constexpr Routing kFanOut{.fan_out = true};

void RequireValid(const Job& job, const Plan& plan) {
  const absl::Status valid = ValidatePlan(job, plan);
  INFO(valid);
  REQUIRE(valid.ok());
}

double MaxOverBound(const Plan& plan) {
  return static_cast<double>(plan.max_nic_bytes()) / static_cast<double>(plan.bound_bytes());
}

// How many engines a byte passes at most on its way.
int Depth(const Job& job, const Plan& plan) {
  std::map<std::string, std::set<std::string>> sources;
  for (const Move& move : AllMoves(plan)) {
    if (job.layout(move.src).role == Role::kRollout) {
      sources[job.layout(move.dst).name.group].insert(job.layout(move.src).name.group);
    }
  }
  std::map<std::string, int> depths;
  for (std::size_t round = 0; round <= plan.groups.size(); ++round) {
    for (const PlanGroup& group : plan.groups) {
      int& depth = depths[group.name];
      for (const std::string& source : sources[group.name]) {
        depth = std::max(depth, 1 + depths[source]);
      }
    }
  }
  int deepest = 0;
  for (const auto& [group, depth] : depths) deepest = std::max(deepest, depth);
  return deepest;
}

// Each of `engines` engines, on nodes of their own, wants all that one trainer has.
Job OneTrainer(int engines, int per_node = 1) {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {60, 1 << 20});
  builder.Trainer(0, "t").Holds("w", {0, 0}, {60, 1 << 20});
  for (int e = 0; e < engines; ++e) {
    builder.Rollout("e" + std::to_string(e), 0, "n" + std::to_string(e / per_node))
        .Holds("w", {0, 0}, {60, 1 << 20});
  }
  return builder.Build();
}

// The plan of `after`, in a job that ran with `before`.
Plan Replanned(const Job& before, const Plan& plan, const Job& after, Routing routing) {
  std::variant<Plan, Refusals> solved = Solve(after, PreviousPlan{before, plan}, routing);
  REQUIRE(std::holds_alternative<Plan>(solved));
  RequireValid(after, std::get<Plan>(solved));
  return std::get<Plan>(std::move(solved));
}

// The groups that are there before keep their parts, and no NIC carries more.
void RequireJoins(const Job& before, const Job& after, Routing routing) {
  const Plan plan = MustSolve(before, routing);
  const Plan grown = Replanned(before, plan, after, routing);
  CHECK(grown.max_nic_bytes() == plan.max_nic_bytes());
  for (const PlanGroup& group : plan.groups) {
    CHECK(grown.FindGroup(group.name)->fingerprint == group.fingerprint);
  }
}

TEST_CASE("one trainer sends once, and the engines pass it on in a chain",
          "[planner][solve][fan-out]") {
  const Job job = OneTrainer(5);
  const Plan plan = MustSolve(job, kFanOut);
  RequireValid(job, plan);
  CHECK(plan.bound_bytes() == std::uint64_t{60} << 20);
  CHECK(plan.max_nic_bytes() == plan.bound_bytes());
  CHECK(plan.bytes == std::uint64_t{300} << 20);
  CHECK(Depth(job, plan) == 4);
  CHECK(MustSolve(job).max_nic_bytes() == plan.bytes);
}

TEST_CASE("engines of one node do not take from each other", "[planner][solve][fan-out]") {
  const Job pairs = OneTrainer(4, 2);
  const Plan plan = MustSolve(pairs, kFanOut);
  RequireValid(pairs, plan);
  CHECK(plan.max_nic_bytes() == std::uint64_t{60} << 20);
  const Job together = OneTrainer(3, 3);
  const Plan direct = MustSolve(together, kFanOut);
  RequireValid(together, direct);
  CHECK(direct.max_nic_bytes() == std::uint64_t{180} << 20);
}

TEST_CASE("nothing is passed on where trainers are no bottleneck", "[planner][solve][fan-out]") {
  const Job job = test::CanonicalJob(test::Qwen3_30B());
  const Plan plan = MustSolve(job, kFanOut);
  CHECK(plan.bounds == MustSolve(job).bounds);
  CHECK(Depth(job, plan) == 0);
}

TEST_CASE("Moonlight from 8 trainers to 16 engines of 8 is within 1.10 of the bound",
          "[planner][solve][fan-out]") {
  test::DeploymentShape shape = test::Moonlight();
  shape.engines = 16;
  const Job job = test::CanonicalJob(shape);
  const Plan plan = MustSolve(job, kFanOut);
  RequireValid(job, plan);
  CHECK(MaxOverBound(plan) <= 1.10);
  CHECK(MustSolve(job).max_nic_bytes() > 4 * plan.max_nic_bytes());
  CHECK(Depth(job, plan) <= 15);
}

TEST_CASE("what the workers of a node want comes to one of them, each in its turn",
          "[planner][solve][node-sharing]") {
  test::JobBuilder builder;
  builder.Trainer(0, "t");
  for (int t = 0; t < 8; ++t) builder.AddTensor("w" + std::to_string(t), Dtype::kInt8, {10});
  for (int t = 0; t < 8; ++t) builder.Holds("w" + std::to_string(t), {0}, {10});
  for (int rank = 0; rank < 4; ++rank) {
    builder.Rollout("e", rank, "n");
    for (int t = 0; t < 8; ++t) builder.Holds("w" + std::to_string(t), {0}, {10});
  }
  const Job job = builder.Build();
  const Plan plan = MustSolve(job, {.node_sharing = true});
  RequireValid(job, plan);
  CHECK(plan.max_ingress_bytes == 20);
  CHECK(plan.max_egress_bytes == 80);
  CHECK(plan.intra_node_bytes == 240);
  CHECK(plan.bound_bytes() == 80);
}

TEST_CASE("of two engines on one node, one gets all from the other",
          "[planner][solve][node-sharing]") {
  const Job job = OneTrainer(4, 2);
  const Plan shared = MustSolve(job, {.node_sharing = true});
  RequireValid(job, shared);
  CHECK(shared.max_egress_bytes == std::uint64_t{120} << 20);
  const Plan both = MustSolve(job, {.fan_out = true, .node_sharing = true});
  RequireValid(job, both);
  CHECK(both.max_egress_bytes == std::uint64_t{60} << 20);
  CHECK(both.max_nic_bytes() == both.bound_bytes());
}

TEST_CASE("an engine that comes to another's node gets all from it, and nothing else changes",
          "[planner][solve][node-sharing]") {
  RequireJoins(OneTrainer(3, 2), OneTrainer(4, 2), {.node_sharing = true});
}

TEST_CASE("Kimi-K2 with fan-out and node sharing comes to the bound of both",
          "[planner][solve][node-sharing]") {
  const Job job = test::CanonicalJob(test::KimiK2());
  const Plan plan = MustSolve(job, {.fan_out = true, .node_sharing = true});
  CHECK(static_cast<double>(plan.bound_bytes()) / 1e9 == Approx(65.85).epsilon(0.001));
  CHECK(MaxOverBound(plan) <= 1.02);
}

TEST_CASE("Kimi-K2 passes on what its fullest pipeline stage has too much of",
          "[planner][solve][fan-out]") {
  const Job job = test::CanonicalJob(test::KimiK2());
  const Plan plan = MustSolve(job, kFanOut);
  CHECK(plan.bounds.fan_out < plan.bounds.direct);
  CHECK(MaxOverBound(plan) <= 1.02);
}

TEST_CASE("an engine that joins takes from the others, and nothing else changes",
          "[planner][solve][fan-out]") {
  RequireJoins(OneTrainer(4), OneTrainer(5), kFanOut);
}

TEST_CASE("when an engine leaves, those that took from it get theirs from others",
          "[planner][solve][fan-out]") {
  const Job before = OneTrainer(5);
  Job after = before;
  std::erase_if(after.layouts, [](const Layout& layout) { return layout.name.group == "e1"; });
  const Plan plan = MustSolve(before, kFanOut);
  const Plan shrunk = Replanned(before, plan, after, kFanOut);
  CHECK(shrunk.max_nic_bytes() == plan.max_nic_bytes());
  CHECK(shrunk.FindGroup("e0")->fingerprint == plan.FindGroup("e0")->fingerprint);
}

// The job, with each of its engines `times` times, on nodes of their own.
Job WithMoreEngines(const Job& job, int times) {
  Job more = job;
  for (const Layout& layout : job.layouts) {
    if (layout.role != Role::kRollout) continue;
    for (int copy = 1; copy < times; ++copy) {
      Layout& added = more.layouts.emplace_back(layout);
      added.name.group += "-" + std::to_string(copy);
      added.node += "-" + std::to_string(copy);
    }
  }
  std::sort(more.layouts.begin(), more.layouts.end(),
            [](const Layout& a, const Layout& b) { return a.name < b.name; });
  return more;
}

TEST_CASE("plans in which rollouts pass on are valid, and lower the fullest NIC or leave it",
          "[planner][solve][fan-out][property]") {
  const Routing routing = GENERATE(Routing{.fan_out = true, .node_sharing = false},
                                   Routing{.fan_out = false, .node_sharing = true},
                                   Routing{.fan_out = true, .node_sharing = true});
  const bool large = GENERATE(false, true);
  const int round = GENERATE(range(0, 40));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " large " << large << " fan-out "
                       << routing.fan_out << " node sharing " << routing.node_sharing);
  std::mt19937_64 rng = test::TestRng(round);
  test::JobLimits limits;
  if (large) limits.extent = 3000;
  const Job job = WithMoreEngines(test::RandomJob(rng, limits), 4);
  const Plan plan = MustSolve(job, routing);
  RequireValid(job, plan);
  REQUIRE(plan == MustSolve(job, routing));
  const Plan direct = MustSolve(job);
  REQUIRE(plan.bytes == direct.bytes);
  // Slices are whole on their way.
  std::uint64_t largest = 0;
  for (const Slice& slice : plan.slices) largest = std::max(largest, slice.bytes);
  REQUIRE(plan.max_nic_bytes() <= direct.max_nic_bytes() + largest);
}

}  // namespace
}  // namespace wb
