// The deployments that the field runs, at full size: what they cost, and how near the bound plans
// come.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "planner/solve/validate.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/canonical_job.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using test::CanonicalJob;
using test::DeploymentShape;
using test::MustSolve;

double MaxOverBound(const Plan& plan) {
  return static_cast<double>(plan.max_nic_bytes()) / static_cast<double>(plan.bound_bytes());
}

// Of one engine: boxes that move if no slice is split, and GB into each rank.
struct Figures {
  std::size_t boxes = 0;
  double rank_gb = 0;
};

Figures EngineFigures(const Plan& plan) {
  const PlanGroup& group = plan.groups.front();
  Figures figures;
  for (const PlanReceiver& receiver : group.receivers) {
    const Demand& demand = plan.demands[receiver.demand];
    figures.boxes += demand.end - demand.begin;
  }
  figures.rank_gb =
      static_cast<double>(group.bytes) / static_cast<double>(group.receivers.size()) / 1e9;
  return figures;
}

TEST_CASE(
    "the canonical deployments have the boxes and bytes that are known of them, and plans "
    "within 2 % of the bound",
    "[planner][solve]") {
  struct Known {
    DeploymentShape shape;
    std::size_t boxes;
    double rank_gb;
    double bound_gb;
  };
  const Known known = GENERATE(Known{test::Moonlight(), 7'592, 4.052, 4.052},
                               Known{test::Qwen3_30B(), 21'918, 7.681, 7.681},
                               Known{test::Qwen3_235B(), 63'270, 14.963, 15.357},
                               Known{test::KimiK2(), 103'072, 70.352, 75.383});
  INFO(known.shape.model.name);
  const Plan plan = MustSolve(CanonicalJob(known.shape));
  const Figures figures = EngineFigures(plan);
  CHECK(figures.boxes == known.boxes);
  CHECK(figures.rank_gb == Approx(known.rank_gb).epsilon(0.0002));
  CHECK(static_cast<double>(plan.bound_bytes()) / 1e9 == Approx(known.bound_gb).epsilon(0.0002));
  CHECK(MaxOverBound(plan) <= 1.02);
}

TEST_CASE("a canonical deployment's plan is valid move by move", "[planner][solve]") {
  const Job job = CanonicalJob(test::Moonlight());
  REQUIRE(ValidatePlan(job, MustSolve(job)).ok());
}

TEST_CASE("an engine that joins a canonical deployment leaves the others as they are",
          "[planner][solve]") {
  const Job job = CanonicalJob(test::Qwen3_30B());
  Job before = job;
  std::erase_if(before.layouts,
                [](const Layout& layout) { return layout.name.group == "engine000"; });
  const Plan plan_before = MustSolve(before);
  const auto solved = Solve(job, PreviousPlan{before, plan_before});
  const Plan& plan = std::get<Plan>(solved);
  REQUIRE(plan.FindGroup("engine001")->fingerprint ==
          plan_before.FindGroup("engine001")->fingerprint);
  REQUIRE(MaxOverBound(plan) <= 1.02);
}

TEST_CASE("each engine alone draws on all replicas alike", "[planner][solve]") {
  DeploymentShape shape = test::Qwen3_30B();
  shape.engines = 4;
  const Job job = CanonicalJob(shape);
  const Plan plan = MustSolve(job);
  for (const PlanGroup& group : plan.groups) {
    std::map<WorkerIndex, std::uint64_t> sent;
    for (const Quota& quota : group.quotas) sent[quota.src] += quota.bytes;
    std::uint64_t most = 0;
    for (const auto& [sender, bytes] : sent) most = std::max(most, bytes);
    const double even = static_cast<double>(group.bytes) / static_cast<double>(shape.trainers);
    CHECK(sent.size() == static_cast<std::size_t>(shape.trainers));
    CHECK(static_cast<double>(most) <= 1.05 * even);
  }
}

}  // namespace
}  // namespace wb
