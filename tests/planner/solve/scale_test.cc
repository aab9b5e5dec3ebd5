// Planning costs what there is to plan.
#include <algorithm>
#include <chrono>
#include <ctime>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/cut_job.h"
#include "tests/support/time_slack.h"

namespace wb {
namespace {

// Bounds are for optimised code; without, planning takes ten times as long.
#ifdef __OPTIMIZE__
constexpr int kBuildSlack = 1;
#else
constexpr int kBuildSlack = 5;
#endif

// Seconds of this process's processor, so that others on the machine do not show.
double SolveSeconds(const Job& job) {
  const std::clock_t start = std::clock();
  REQUIRE(Solve(job).index() == 0);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double SlackSeconds(int milliseconds) {
  const std::chrono::duration<double> bound =
      kBuildSlack * test::Slack(std::chrono::milliseconds(milliseconds));
  return bound.count();
}

Job Experts(std::int64_t tensors) {
  return test::CutJob({.tensors = tensors, .trainers = 8, .rollouts = 8});
}

TEST_CASE("planning ten times the tensors takes about ten times as long",
          "[planner][solve][field][case-138]") {
  const Job small = Experts(2'000);
  const double few = std::max(SolveSeconds(small), SolveSeconds(small));
  const double many = SolveSeconds(Experts(20'000));
  INFO(few << " s and " << many << " s");
  REQUIRE(many <= 15 * few);
  REQUIRE(many < SlackSeconds(2'000));
}

TEST_CASE("a tensor cut over hundreds of ranks on both sides is planned slice by slice",
          "[planner][solve]") {
  const Job job = test::CutJob(
      {.tensors = 1, .trainers = 256, .rollouts = 256, .rollout_cut = test::RankCut::kColumns});
  const Plan plan = test::MustSolve(job);
  REQUIRE(AllMoves(plan).size() == 256 * 256);
  REQUIRE(plan.max_nic_bytes() == plan.bound_bytes());
  REQUIRE(SolveSeconds(job) < SlackSeconds(2'000));
}

}  // namespace
}  // namespace wb
