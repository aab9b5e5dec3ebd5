// Laws that hold for the plan of every job, over random jobs.
#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <variant>
#include <vector>

#include "planner/solve/planner.h"
#include "planner/solve/validate.h"
#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

constexpr int kRounds = 300;

Plan MustSolve(const Job& job) {
  std::variant<Plan, Refusals> solved = Solve(job);
  if (const auto* refusals = std::get_if<Refusals>(&solved)) {
    for (const Refusal& refusal : *refusals) UNSCOPED_INFO(refusal.text);
    FAIL("refused");
  }
  return std::get<Plan>(std::move(solved));
}

// Calls `visit` with every index in the box.
template <typename Visit>
void ForEachIndex(const Box& box, Visit visit) {
  Index at = box.lo();
  while (true) {
    visit(at);
    std::size_t d = at.size();
    while (d-- > 0) {
      if (++at[d] < box.hi()[d]) break;
      at[d] = box.lo()[d];
      if (d == 0) return;
    }
  }
}

std::uint64_t MaxNic(const Plan& plan) {
  return std::max(plan.max_egress_bytes, plan.max_ingress_bytes);
}

TEST_CASE("every element that a rollout wants moves exactly once, from a trainer that holds it",
          "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);

  using Element = std::tuple<WorkerIndex, TensorId, Index>;
  std::map<Element, int> wanted;
  std::map<Element, int> held;
  for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
    auto& side = job.layouts[w].role == Role::kTrainer ? held : wanted;
    for (const Piece& piece : job.layouts[w].pieces) {
      ForEachIndex(piece.box, [&](const Index& at) {
        side[{WorkerIndex(w), piece.tensor, at}] = 0;
      });
    }
  }
  for (const Move& move : plan.moves) {
    ForEachIndex(move.box, [&](const Index& at) {
      REQUIRE(held.count({move.src, move.tensor, at}) == 1);
      REQUIRE(wanted.count({move.dst, move.tensor, at}) == 1);
      ++wanted[{move.dst, move.tensor, at}];
    });
  }
  REQUIRE(std::all_of(wanted.begin(), wanted.end(), [](const auto& e) { return e.second == 1; }));
}

TEST_CASE("a plan passes validation, and no NIC carries less than the bound",
          "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(1000 + round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);
  const absl::Status valid = ValidatePlan(job, plan);
  INFO(valid);
  REQUIRE(valid.ok());
  REQUIRE(MaxNic(plan) >= plan.bound_bytes());
}

}  // namespace
}  // namespace wb
