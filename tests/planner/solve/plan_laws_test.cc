// Laws that hold for the plan of every job, over random jobs.
#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "planner/solve/validate.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::MustSolve;

constexpr int kRounds = 200;

// Slices of a few MiB, so that some are split; only boxes, no memory.
test::JobLimits LargeTensors() {
  test::JobLimits limits;
  limits.extent = 3000;
  return limits;
}

TEST_CASE("every element that a rollout wants moves exactly once, from a trainer that holds it",
          "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);

  using Element = std::tuple<WorkerIndex, TensorId, Index>;
  std::map<Element, int> held;
  std::map<Element, int> wanted;  // -> times it moves
  for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
    auto& side = job.layouts[w].role == Role::kTrainer ? held : wanted;
    for (const Piece& piece : job.layouts[w].pieces) {
      test::ForEachIndex(piece.box, [&](const Index& at) {
        side[{WorkerIndex(w), piece.tensor, at}] = 0;
      });
    }
  }
  std::size_t not_held = 0;
  std::size_t not_wanted = 0;
  for (const Move& move : plan.moves) {
    test::ForEachIndex(move.box, [&](const Index& at) {
      not_held += 1 - held.count({move.src, move.tensor, at});
      const auto element = wanted.find({move.dst, move.tensor, at});
      if (element == wanted.end()) {
        ++not_wanted;
      } else {
        ++element->second;
      }
    });
  }
  REQUIRE(not_held == 0);
  REQUIRE(not_wanted == 0);
  REQUIRE(std::all_of(wanted.begin(), wanted.end(), [](const auto& e) { return e.second == 1; }));
}

TEST_CASE("a plan passes validation", "[planner][solve][property]") {
  const bool large = GENERATE(false, true);
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " large " << large);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng, large ? LargeTensors() : test::JobLimits{});
  const absl::Status valid = ValidatePlan(job, MustSolve(job));
  INFO(valid);
  REQUIRE(valid.ok());
}

TEST_CASE("the fullest NIC is at most one slice above the bound", "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);
  std::uint64_t largest = 0;
  for (const Move& move : plan.moves) largest = std::max(largest, move.bytes);
  REQUIRE(plan.bound_bytes() <= plan.max_nic_bytes());
  REQUIRE(plan.max_nic_bytes() <= plan.bound_bytes() + largest);
}

TEST_CASE("slices that can be split bring the fullest NIC to the bound within a part and 2 %",
          "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng, LargeTensors());
  const Plan plan = MustSolve(job);
  const auto bound = static_cast<double>(plan.bound_bytes());
  REQUIRE(static_cast<double>(plan.max_nic_bytes()) <= 1.02 * bound + (2 << 20));
}

TEST_CASE("the same job gives the same plan", "[planner][solve][property]") {
  const int round = GENERATE(range(0, 50));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  REQUIRE(MustSolve(job) == MustSolve(job));
}

TEST_CASE("the order of a job's tables does not show in its plan", "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Job shuffled = test::ShuffleTables(job, rng);
  const Plan plan = MustSolve(job);
  const Plan of_shuffled = MustSolve(shuffled);
  REQUIRE(of_shuffled.fingerprint == plan.fingerprint);
  REQUIRE(test::MoveLines(shuffled, of_shuffled) == test::MoveLines(job, plan));
  REQUIRE(ValidatePlan(shuffled, of_shuffled).ok());
}

// Per worker, told by what it holds and wants: the boxes that come in.
std::vector<std::vector<Box>> LandedBoxes(const Job& job, const Plan& plan) {
  std::vector<std::vector<Box>> landed(job.layouts.size());
  for (const Move& move : plan.moves) landed[move.dst.value()].push_back(move.box);
  std::sort(landed.begin(), landed.end());
  return landed;
}

TEST_CASE("exchanging ranks keeps what lands and the bytes of the fullest NIC",
          "[planner][solve][property]") {
  const bool large = GENERATE(false, true);
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " large " << large);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng, large ? LargeTensors() : test::JobLimits{});
  const Job exchanged = test::ExchangeRanks(job, rng);
  const Plan plan = MustSolve(job);
  const Plan after = MustSolve(exchanged);
  REQUIRE(after.max_nic_bytes() == plan.max_nic_bytes());
  REQUIRE(after.bound_bytes() == plan.bound_bytes());
  REQUIRE(after.bytes == plan.bytes);
  REQUIRE(LandedBoxes(exchanged, after) == LandedBoxes(job, plan));
}

}  // namespace
}  // namespace wb
