// Laws that hold for the plan of every job, over random jobs.
#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "planner/solve/balance.h"
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
  for (const Move& move : AllMoves(plan)) {
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

// The job with a twin of each of its groups: engines of one layout, and data parallel trainers.
Job WithTwins(const Job& job) {
  Job twins = job;
  const auto trainers = std::count_if(job.layouts.begin(), job.layouts.end(),
                                      [](const Layout& l) { return l.role == Role::kTrainer; });
  for (const Layout& layout : job.layouts) {
    Layout& twin = twins.layouts.emplace_back(layout);
    if (layout.role == Role::kTrainer) {
      twin.name.rank += static_cast<std::int32_t>(trainers);
    } else {
      twin.name.group += "-twin";
    }
    twin.node += "-twin";
  }
  std::sort(twins.layouts.begin(), twins.layouts.end(),
            [](const Layout& a, const Layout& b) { return a.name < b.name; });
  return twins;
}

// The bound, 2 %, and what cannot be split: less than two parts, or a row.
double BoundAndRest(const Plan& plan) {
  std::uint64_t whole = 2 * kMinPartBytes;
  for (const Slice& slice : plan.slices) {
    whole = std::max(whole, slice.row_bytes());
  }
  return 1.02 * static_cast<double>(plan.bound_bytes()) + static_cast<double>(whole);
}

TEST_CASE("a plan over engines and trainers that are alike passes validation",
          "[planner][solve][property]") {
  const bool large = GENERATE(false, true);
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " large " << large);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = WithTwins(test::RandomJob(rng, large ? LargeTensors() : test::JobLimits{}));
  const Plan plan = MustSolve(job);
  const absl::Status valid = ValidatePlan(job, plan);
  INFO(valid);
  REQUIRE(valid.ok());
  // Twice the wanted bytes, over twice the trainers.
  const auto bound = static_cast<double>(plan.bound_bytes());
  std::uint64_t largest = 0;
  for (const Move& move : AllMoves(plan)) largest = std::max(largest, move.bytes);
  REQUIRE(static_cast<double>(plan.max_nic_bytes()) <=
          (large ? BoundAndRest(plan) : bound + static_cast<double>(largest)));
}

TEST_CASE("the moves of a group that are asked for are those of all its moves",
          "[planner][solve][property]") {
  const int round = GENERATE(range(0, 50));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Plan plan = MustSolve(test::RandomJob(rng, LargeTensors()));
  for (const PlanGroup& group : plan.groups) {
    const auto wanted = [](WorkerIndex src, WorkerIndex dst) {
      return (src.value() + dst.value()) % 2 == 0;
    };
    std::vector<Move> expected = MovesOf(plan, group);
    std::uint64_t bytes = 0;
    for (const Move& move : expected) bytes += move.bytes;
    REQUIRE(bytes == group.bytes);
    std::erase_if(expected, [&](const Move& move) { return !wanted(move.src, move.dst); });
    REQUIRE(MovesOf(plan, group, wanted) == expected);
  }
}

TEST_CASE("the fullest NIC is at most one slice above the bound", "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);
  std::uint64_t largest = 0;
  for (const Move& move : AllMoves(plan)) largest = std::max(largest, move.bytes);
  REQUIRE(plan.bound_bytes() <= plan.max_nic_bytes());
  REQUIRE(plan.max_nic_bytes() <= plan.bound_bytes() + largest);
}

TEST_CASE("slices that can be split bring the fullest NIC to the bound within 2 % and a whole part",
          "[planner][solve][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng, LargeTensors());
  const Plan plan = MustSolve(job);
  REQUIRE(static_cast<double>(plan.max_nic_bytes()) <= BoundAndRest(plan));
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
  for (const Move& move : AllMoves(plan)) landed[move.dst.value()].push_back(move.box);
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
