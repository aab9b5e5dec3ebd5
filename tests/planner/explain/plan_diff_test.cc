#include "planner/explain/plan_diff.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::MustSolve;
using Names = std::vector<std::string>;

struct Planned {
  Job job;
  Plan plan;
};

Planned PlanOf(Job job) {
  Plan plan = MustSolve(job);
  return {std::move(job), std::move(plan)};
}

PlanDiff MustDiff(const Planned& before, const Planned& after) {
  std::variant<PlanDiff, Refusals> diff =
      DiffPlans({before.job, before.plan}, after.job, after.plan);
  if (const auto* refusals = std::get_if<Refusals>(&diff)) FAIL(refusals->front().text);
  return std::get<PlanDiff>(std::move(diff));
}

std::string MustRefuseDiff(const Planned& before, const Planned& after) {
  const auto diff = DiffPlans({before.job, before.plan}, after.job, after.plan);
  REQUIRE(std::holds_alternative<Refusals>(diff));
  REQUIRE(std::get<Refusals>(diff).size() == 1);
  REQUIRE(std::get<Refusals>(diff).front().kind == "diff");
  return std::get<Refusals>(diff).front().text;
}

// Tensors a, b, c of 4 x 4, on one trainer and so many engines that want the first `wanted`.
Job Small(int engines, const Names& tensors, Dtype dtype = Dtype::kFp32, std::int64_t rows = 4) {
  test::JobBuilder builder("small");
  for (const std::string& name : tensors) builder.AddTensor(name, dtype, {rows, 4});
  builder.Trainer(0, "n0");
  for (const std::string& name : tensors) builder.Holds(name, {0, 0}, {rows, 4});
  for (int engine = 0; engine < engines; ++engine) {
    builder.Rollout("engine" + std::to_string(engine), 0, "r" + std::to_string(engine));
    for (const std::string& name : tensors) builder.Holds(name, {0, 0}, {rows, 4});
  }
  return builder.Build();
}

TEST_CASE("an engine that joins adds its group and NIC, and leaves the others' parts",
          "[planner][explain]") {
  const PlanDiff diff = MustDiff(PlanOf(Small(1, {"a", "b"})), PlanOf(Small(2, {"a", "b"})));
  REQUIRE(diff.groups_added == Names{"engine1"});
  REQUIRE(diff.groups_removed.empty());
  REQUIRE(diff.groups_changed.empty());
  REQUIRE(diff.groups_unchanged == Names{"engine0"});
  REQUIRE(diff.workers_added == Names{"engine1/0"});
  REQUIRE(diff.workers_removed.empty());
  REQUIRE(diff.tensors_added.empty());
  REQUIRE(diff.nics_changed == 2);
  REQUIRE(diff.nics == std::vector<NicChange>{{{"engine1", 0}, Direction::kIn, 0, 128},
                                              {{"policy", 0}, Direction::kOut, 128, 256}});
}

TEST_CASE("tensors that come, go or change their dtype are named, and change the groups",
          "[planner][explain]") {
  const PlanDiff diff = MustDiff(PlanOf(Small(1, {"a", "b"})), PlanOf(Small(1, {"b", "c"})));
  REQUIRE(diff.tensors_added == Names{"c"});
  REQUIRE(diff.tensors_removed == Names{"a"});
  REQUIRE(diff.tensors_changed.empty());
  REQUIRE(diff.groups_changed == Names{"engine0"});
  const PlanDiff halved =
      MustDiff(PlanOf(Small(1, {"a", "b"})), PlanOf(Small(1, {"a", "b"}, Dtype::kBf16)));
  REQUIRE(halved.tensors_changed == Names{"a", "b"});
  REQUIRE(halved.nics_changed == 2);
}

TEST_CASE("plans of two models have no difference, only a reason", "[planner][explain][refused]") {
  REQUIRE(MustRefuseDiff(PlanOf(Small(1, {"a"})), PlanOf(Small(1, {"b", "c"}))) ==
          "the plans are of two models: small has 1 tensors, small has 2, and no name is in both");
  REQUIRE(MustRefuseDiff(PlanOf(Small(1, {"a", "b"})), PlanOf(Small(1, {"b"}, Dtype::kFp32, 8))) ==
          "the plans are of two models: of 1 tensors in both, 1 have another shape; b is FP32 "
          "[4,4] in small and FP32 [8,4] in small");
}

using Way = std::pair<WorkerName, Direction>;

std::map<Way, std::uint64_t> Carried(const Planned& planned) {
  std::map<Way, std::uint64_t> carried;
  const Job& job = planned.job;
  for (const Move& move : AllMoves(planned.plan)) {
    if (job.layout(move.src).node == job.layout(move.dst).node) continue;
    carried[{job.layout(move.src).name, Direction::kOut}] += move.bytes;
    carried[{job.layout(move.dst).name, Direction::kIn}] += move.bytes;
  }
  return carried;
}

std::uint64_t Size(std::uint64_t before, std::uint64_t after) {
  return std::max(before, after) - std::min(before, after);
}

// How much each way of a NIC changes that does, most first.
std::vector<std::uint64_t> Changes(const Planned& before, const Planned& after) {
  std::map<Way, std::pair<std::uint64_t, std::uint64_t>> ways;
  for (const auto& [way, bytes] : Carried(before)) ways[way].first = bytes;
  for (const auto& [way, bytes] : Carried(after)) ways[way].second = bytes;
  std::vector<std::uint64_t> changes;
  for (const auto& [way, carried] : ways) {
    const std::uint64_t change = Size(carried.first, carried.second);
    if (change > 0) changes.push_back(change);
  }
  std::sort(changes.rbegin(), changes.rend());
  return changes;
}

TEST_CASE("a plan differs in nothing from itself", "[planner][explain][property]") {
  const int round = GENERATE(range(0, 20));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Planned all = PlanOf(test::RandomJob(rng));
  const PlanDiff same = MustDiff(all, all);
  REQUIRE(same.groups_unchanged.size() == all.plan.groups.size());
  REQUIRE(same.groups_changed.empty());
  REQUIRE(same.nics_changed == 0);
  REQUIRE(same.nics.empty());
}

TEST_CASE("a plan differs from one with a group less in what their moves put on NICs",
          "[planner][explain][property]") {
  const int round = GENERATE(range(0, 50));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Planned all = PlanOf(test::RandomJob(rng));
  if (all.plan.groups.size() < 2) return;
  Job fewer = all.job;
  const std::string gone = all.plan.groups.front().name;
  std::erase_if(fewer.layouts, [&](const Layout& layout) { return layout.name.group == gone; });
  const Planned rest = PlanOf(std::move(fewer));

  const PlanDiff diff = MustDiff(all, rest);
  REQUIRE(diff.groups_removed == Names{gone});
  REQUIRE(diff.groups_added.empty());
  REQUIRE(diff.groups_changed.size() + diff.groups_unchanged.size() == rest.plan.groups.size());
  std::vector<std::uint64_t> changes = Changes(all, rest);
  REQUIRE(diff.nics_changed == changes.size());
  changes.resize(std::min<std::size_t>(changes.size(), 5));
  std::vector<std::uint64_t> told;
  for (const NicChange& nic : diff.nics) {
    REQUIRE(nic.before == Carried(all)[{nic.worker, nic.direction}]);
    REQUIRE(nic.after == Carried(rest)[{nic.worker, nic.direction}]);
    told.push_back(Size(nic.before, nic.after));
  }
  REQUIRE(told == changes);
}

}  // namespace
}  // namespace wb
