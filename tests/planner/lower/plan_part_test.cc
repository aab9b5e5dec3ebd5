#include "planner/lower/plan_part.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/lower/schedule.h"
#include "planner/model/plan_moves.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::JobBuilder;
using test::MustSolve;

Job TwoEngines() {
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp32, {8}).AddTensor("b", Dtype::kFp32, {8});
  builder.Trainer(0, "t0").Holds("a", {0}, {8});
  builder.Trainer(1, "t1").Holds("b", {0}, {8});
  builder.Rollout("e0", 0, "r0").Holds("a", {0}, {8}).Holds("b", {0}, {8});
  builder.Rollout("e1", 0, "r1").Holds("a", {0}, {4});
  builder.Rollout("e1", 1, "r1").Holds("a", {4}, {8});
  return builder.Build();
}

TEST_CASE("a part has the moves of one group that begin or end on a node, and their names alone",
          "[planner][lower]") {
  const Job job = TwoEngines();
  const Plan plan = MustSolve(job);
  const PlanPart part = MakePlanPart(job, plan, "e0", "t1");
  REQUIRE(part.job == "job");
  REQUIRE(part.group == "e0");
  REQUIRE(part.fingerprint == plan.FindGroup("e0")->fingerprint);
  REQUIRE(part.workers == std::vector<PlanWorker>{{{"e0", 0}, "r0"}, {{"policy", 1}, "t1"}});
  REQUIRE(part.tensors.size() == 1);
  REQUIRE(part.tensors[0].name == "b");
  REQUIRE(part.moves == std::vector<Move>{{WorkerIndex(1), WorkerIndex(0), TensorId(0),
                                           *Box::Create({0}, {8}), 32}});
}

TEST_CASE("a node that has no share in a delivery gets an empty part", "[planner][lower]") {
  const Job job = TwoEngines();
  const PlanPart part = MakePlanPart(job, MustSolve(job), "e1", "t1");
  REQUIRE(part.moves.empty());
  REQUIRE(part.workers.empty());
  REQUIRE(part.tensors.empty());
}

// The part of one node by the definition: its moves alone, and a table of what they name.
PlanPart PartByDefinition(const Job& job,
                          const Plan& plan,
                          const PlanGroup& group,
                          const std::string& node) {
  PlanPart part{job.name, group.name, group.fingerprint, {}, {}, {}, {}};
  part.moves = MovesOf(plan, group, [&](WorkerIndex src, WorkerIndex dst) {
    return job.layout(src).node == node || job.layout(dst).node == node;
  });
  std::map<WorkerIndex, WorkerIndex> workers;
  std::map<TensorId, TensorId> tensors;
  for (const Move& move : part.moves) {
    workers[move.src];
    workers[move.dst];
    tensors[move.tensor];
  }
  for (auto& [old_id, new_id] : workers) {
    new_id = WorkerIndex(static_cast<std::uint32_t>(part.workers.size()));
    part.workers.push_back({job.layout(old_id).name, job.layout(old_id).node});
  }
  for (auto& [old_id, new_id] : tensors) {
    new_id = TensorId(static_cast<std::uint32_t>(part.tensors.size()));
    part.tensors.push_back(job.tensor(old_id));
  }
  for (const Tie& tie : group.ties) {
    const auto target = tensors.find(tie.target);
    if (target != tensors.end()) part.ties.push_back({job.tensor(tie.alias).name, target->second});
  }
  for (Move& move : part.moves) {
    move.src = workers.at(move.src);
    move.dst = workers.at(move.dst);
    move.tensor = tensors.at(move.tensor);
  }
  return part;
}

TEST_CASE("parts made in one walk are those of each node for itself",
          "[planner][lower][property]") {
  const int round = GENERATE(range(0, 60));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);
  std::set<std::string> names{"node of nobody"};
  for (const Layout& layout : job.layouts) names.insert(layout.node);
  std::vector<std::string> nodes(names.begin(), names.end());
  std::shuffle(nodes.begin(), nodes.end(), rng);
  if (round % 2 == 1) nodes.resize((nodes.size() + 1) / 2);
  for (const PlanGroup& group : plan.groups) {
    std::size_t made = 0;
    MakePlanParts(job, plan, group.name, nodes, [&](std::size_t node, const PlanPart& part) {
      REQUIRE(node == made++);
      REQUIRE(part == PartByDefinition(job, plan, group, nodes[node]));
    });
    REQUIRE(made == nodes.size());
  }
}

TEST_CASE("both ends lower a part to the same chunks as the whole plan",
          "[planner][lower][property]") {
  const int round = GENERATE(range(0, 40));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Job job = test::RandomJob(rng);
  const Plan plan = MustSolve(job);
  for (const Layout& layout : job.layouts) {
    if (layout.role != Role::kRollout) continue;
    const PlanPart part = MakePlanPart(job, plan, layout.name.group, layout.node);
    const absl::StatusOr<Layout> bound = BindLayout(RegistrationOf(job, layout), part);
    REQUIRE(bound.ok());
    std::vector<Move> of_part;
    for (const Move& move : part.moves) {
      const bool same_pair = !of_part.empty() && move.src == of_part.front().src;
      if (part.workers[move.dst.value()].name != layout.name) continue;
      if (of_part.empty() || same_pair) of_part.push_back(move);
    }
    if (of_part.empty()) continue;
    const WorkerName src = part.workers[of_part.front().src.value()].name;
    std::vector<Move> of_plan;
    for (const Move& move : AllMoves(plan)) {
      if (job.layout(move.src).name == src && job.layout(move.dst).name == layout.name) {
        of_plan.push_back(move);
      }
    }
    const auto lowered = LowerStream(of_part, part.tensors, *bound, StreamEnd::kDestination, 64);
    const auto direct = LowerStream(of_plan, job.tensors, layout, StreamEnd::kDestination, 64);
    REQUIRE(lowered.ok());
    REQUIRE(direct.ok());
    REQUIRE(lowered->chunks == direct->chunks);
  }
}

TEST_CASE("tied tensors are bound to the one they travel as", "[planner][lower]") {
  JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp32, {4}).AddTensor("b", Dtype::kFp32, {4});
  builder.Trainer(0, "t0")
      .AddParam({.name = "a", .shape = {4}, .pieces = {{"a", {0}, {4}}}, .buffer = "flat"})
      .AddParam({.name = "b", .shape = {4}, .pieces = {{"b", {0}, {4}}}, .buffer = "flat"});
  builder.Rollout("e", 0, "r0").Holds("a", {0}, {4}).Holds("b", {0}, {4});
  const Job job = builder.Build();
  const PlanPart part = MakePlanPart(job, MustSolve(job), "e", "r0");
  REQUIRE(part.ties == std::vector<PlanTie>{{"b", TensorId(0)}});
  const absl::StatusOr<Layout> bound = BindLayout(RegistrationOf(job, job.layouts[0]), part);
  REQUIRE(bound.ok());
  const auto stream =
      LowerStream(part.moves, part.tensors, *bound, StreamEnd::kDestination, kDefaultChunkBytes);
  REQUIRE(stream.ok());
  REQUIRE(stream->bytes == 16);
  REQUIRE(stream->chunks[0].extra.size() == 1);
}

TEST_CASE("a layout whose tensor differs from the plan's is refused with both",
          "[planner][lower]") {
  const Job job = TwoEngines();
  const PlanPart part = MakePlanPart(job, MustSolve(job), "e0", "r0");
  Registration registration = RegistrationOf(job, job.layouts[0]);
  registration.tensors[1].dtype = Dtype::kBf16;
  const absl::Status status = BindLayout(registration, part).status();
  REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(std::string(status.message()) ==
          "tensor b is BF16 [8] at e0/0 and FP32 [8] in the plan of group e0");
}

TEST_CASE("pieces of tensors that the part does not name are dropped", "[planner][lower]") {
  const Job job = TwoEngines();
  const PlanPart part = MakePlanPart(job, MustSolve(job), "e0", "t1");
  const absl::StatusOr<Layout> bound = BindLayout(RegistrationOf(job, job.layouts[0]), part);
  REQUIRE(bound.ok());
  REQUIRE(bound->pieces.size() == 1);
}

}  // namespace
}  // namespace wb
