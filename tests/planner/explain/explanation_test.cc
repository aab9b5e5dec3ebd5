// What is said of a plan, against what its moves say one element at a time.
#include "planner/explain/explanation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using test::ForEachIndex;
using test::MustSolve;
using Workers = std::vector<WorkerIndex>;

constexpr int kRounds = 100;

bool Local(const Job& job, const Move& move) {
  return job.layout(move.src).node == job.layout(move.dst).node;
}

bool Holds(const Piece& piece, TensorId tensor, const Index& at) {
  if (piece.tensor != tensor) return false;
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (at[d] < piece.box.lo()[d] || at[d] >= piece.box.hi()[d]) return false;
  }
  return true;
}

Workers HoldersOf(const Job& job, TensorId tensor, const Index& at) {
  Workers holders;
  for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
    const Layout& layout = job.layouts[w];
    const bool holds = layout.role == Role::kTrainer &&
                       std::any_of(layout.pieces.begin(), layout.pieces.end(),
                                   [&](const Piece& piece) { return Holds(piece, tensor, at); });
    if (holds) holders.emplace_back(w);
  }
  return holders;
}

// What passes NICs, by who holds it.
struct Passing {
  std::uint64_t bytes = 0;
  std::set<WorkerIndex> senders;
};

// Calls `visit(move, holders, bytes)` for every element that crosses between nodes.
template <typename Visit>
void ForEachCrossing(const Job& job, const Plan& plan, Visit visit) {
  for (const Move& move : AllMoves(plan)) {
    if (Local(job, move)) continue;
    const std::uint64_t bytes = move.bytes / static_cast<std::uint64_t>(move.box.elements());
    ForEachIndex(move.box,
                 [&](const Index& at) { visit(move, HoldersOf(job, move.tensor, at), bytes); });
  }
}

std::map<Workers, Passing> PassingByHolders(const Job& job, const Plan& plan) {
  std::map<Workers, Passing> passing;
  ForEachCrossing(job, plan, [&](const Move& move, const Workers& holders, std::uint64_t bytes) {
    passing[holders].bytes += bytes;
    passing[holders].senders.insert(move.src);
  });
  return passing;
}

std::vector<NicLoad> SlowLoads(const Job& job, const Plan& plan) {
  std::vector<NicLoad> loads(job.layouts.size());
  for (const Move& move : AllMoves(plan)) {
    NicLoad& src = loads[move.src.value()];
    NicLoad& dst = loads[move.dst.value()];
    (Local(job, move) ? src.local_out : src.out) += move.bytes;
    (Local(job, move) ? dst.local_in : dst.in) += move.bytes;
  }
  return loads;
}

// Where the piece puts the box's elements, row-major: buffer and byte.
std::vector<std::uint64_t> PlacesIn(const Piece& piece, const Box& box, std::uint64_t element) {
  std::vector<std::uint64_t> places;
  ForEachIndex(box, [&](const Index& at) {
    std::uint64_t place = (std::uint64_t{piece.buffer} << 40) + piece.offset_bytes;
    for (std::size_t d = 0; d < at.size(); ++d) {
      const std::int64_t steps = (at[d] - piece.box.lo()[d]) * piece.strides[d];
      place += static_cast<std::uint64_t>(steps) * element;
    }
    places.push_back(place);
  });
  return places;
}

// Those of each piece that holds all of the move's box, in the order of pieces, each once.
std::vector<std::vector<std::uint64_t>> PlacesOf(const Layout& layout,
                                                 const std::set<TensorId>& tensors,
                                                 const Move& move,
                                                 std::uint64_t element) {
  std::vector<std::vector<std::uint64_t>> places;
  for (const Piece& piece : layout.pieces) {
    if (!tensors.contains(piece.tensor) || !Contains(piece.box, move.box)) continue;
    std::vector<std::uint64_t> of_piece = PlacesIn(piece, move.box, element);
    const bool known = std::find(places.begin(), places.end(), of_piece) != places.end();
    if (!known) places.push_back(std::move(of_piece));
  }
  return places;
}

bool OneRun(const std::vector<std::uint64_t>& places, std::uint64_t element_bytes) {
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i] != places[i - 1] + element_bytes) return false;
  }
  return true;
}

MoveSurvey SlowSurvey(const Job& job, const Plan& plan) {
  MoveSurvey survey;
  for (const Move& move : AllMoves(plan)) {
    ++survey.moves;
    const std::uint64_t element = move.bytes / static_cast<std::uint64_t>(move.box.elements());
    std::set<TensorId> names{move.tensor};
    const auto source = PlacesOf(job.layout(move.src), names, move, element);
    for (const Tie& tie : plan.ties) {
      if (tie.target == move.tensor) names.insert(tie.alias);
    }
    const auto destination = PlacesOf(job.layout(move.dst), names, move, element);
    const bool source_run = OneRun(source.front(), element);
    const bool destination_run = destination.size() == 1 && OneRun(destination.front(), element);
    (source_run ? survey.source.contiguous_bytes : survey.source.strided_bytes) += move.bytes;
    (destination_run ? survey.destination.contiguous_bytes : survey.destination.strided_bytes) +=
        move.bytes;
  }
  return survey;
}

struct Drawn {
  Job job;
  Plan plan;
};

Drawn Draw(int round) {
  std::mt19937_64 rng = test::TestRng(round);
  Drawn drawn{test::RandomJob(rng), {}};
  drawn.plan = MustSolve(drawn.job);
  return drawn;
}

std::vector<ReplicaUse> SlowUse(const Job& job, const Plan& plan) {
  std::map<std::size_t, ReplicaUse> uses;
  for (const auto& [holders, passing] : PassingByHolders(job, plan)) {
    ReplicaUse& use = uses.try_emplace(holders.size(), ReplicaUse{0, 0, SIZE_MAX, 0}).first->second;
    use.holders = holders.size();
    use.bytes += passing.bytes;
    use.least_senders = std::min(use.least_senders, passing.senders.size());
    use.mean_senders += static_cast<double>(passing.bytes * passing.senders.size());
  }
  std::vector<ReplicaUse> rows;
  for (auto& [count, use] : uses) {
    use.mean_senders /= static_cast<double>(use.bytes);
    rows.push_back(use);
  }
  return rows;
}

// What passes one way of a NIC: its causes by family and holders, and who is at the other ends.
struct SlowNic {
  std::map<std::pair<std::string, std::size_t>, std::uint64_t> causes;
  std::set<WorkerIndex> peers;
  std::set<std::string> groups;
};

SlowNic SlowCauses(const Job& job, const Plan& plan, const NicWay& nic) {
  const bool out = nic.direction == Direction::kOut;
  SlowNic slow;
  ForEachCrossing(job, plan, [&](const Move& move, const Workers& holders, std::uint64_t bytes) {
    if ((out ? move.src : move.dst) != nic.worker) return;
    slow.causes[{TensorFamily(job.tensor(move.tensor).name), holders.size()}] += bytes;
    slow.peers.insert(out ? move.dst : move.src);
    slow.groups.insert(job.layout(move.dst).name.group);
  });
  return slow;
}

std::map<std::pair<std::string, std::size_t>, std::uint64_t> ByKind(const BusyNic& nic) {
  std::map<std::pair<std::string, std::size_t>, std::uint64_t> causes;
  for (const Cause& cause : nic.causes) causes[{cause.tensors, cause.holders}] += cause.bytes;
  return causes;
}

// What each NIC carries one way, most first.
std::vector<std::uint64_t> Carried(const std::vector<NicLoad>& loads) {
  std::vector<std::uint64_t> carried;
  for (const NicLoad& load : loads) {
    carried.push_back(load.out);
    carried.push_back(load.in);
  }
  std::sort(carried.rbegin(), carried.rend());
  carried.erase(std::find(carried.begin(), carried.end(), std::uint64_t{0}), carried.end());
  return carried;
}

// Rollouts that get so much through their NICs.
Workers ThatGet(std::uint64_t bytes, const std::vector<NicLoad>& loads) {
  Workers workers;
  for (std::uint32_t w = 0; w < loads.size(); ++w) {
    if (loads[w].in == bytes) workers.emplace_back(w);
  }
  return workers;
}

// Bytes that nobody but these trainers holds; both are ascending.
std::uint64_t HeldBy(const Workers& trainers, const Job& job, const Plan& plan) {
  std::uint64_t bytes = 0;
  for (const auto& [holders, passing] : PassingByHolders(job, plan)) {
    const bool inside =
        std::includes(trainers.begin(), trainers.end(), holders.begin(), holders.end());
    if (inside) bytes += passing.bytes;
  }
  return bytes;
}

TEST_CASE("loads, runs in memory and replicas are those of all moves",
          "[planner][explain][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  const Drawn drawn = Draw(round);
  const Explanation explanation = Explain(drawn.job, drawn.plan, std::nullopt);
  REQUIRE(NicLoads(drawn.job, drawn.plan) == SlowLoads(drawn.job, drawn.plan));
  REQUIRE(explanation.survey == SlowSurvey(drawn.job, drawn.plan));
  REQUIRE(explanation.replicas == SlowUse(drawn.job, drawn.plan));
  REQUIRE_FALSE(explanation.wire.has_value());
}

TEST_CASE("the fullest NICs come first, with causes that add up to what they carry",
          "[planner][explain][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  const Drawn drawn = Draw(round);
  const std::vector<NicLoad> loads = SlowLoads(drawn.job, drawn.plan);
  std::vector<std::uint64_t> carried = Carried(loads);
  carried.resize(std::min<std::size_t>(carried.size(), 5));
  std::vector<std::uint64_t> told;
  for (const BusyNic& nic : Explain(drawn.job, drawn.plan, std::nullopt).busiest) {
    told.push_back(nic.bytes);
    REQUIRE(nic.bytes == BytesOf(loads[nic.nic.worker.value()], nic.nic.direction));
    const SlowNic slow = SlowCauses(drawn.job, drawn.plan, nic.nic);
    REQUIRE(nic.peers == slow.peers.size());
    REQUIRE(nic.groups == slow.groups.size());
    std::uint64_t bytes = nic.other_bytes;
    for (const auto& [kind, of_kind] : ByKind(nic)) {
      REQUIRE(slow.causes.at(kind) == of_kind);
      bytes += of_kind;
    }
    REQUIRE(bytes == nic.bytes);
    REQUIRE(nic.causes.size() == std::min<std::size_t>(slow.causes.size(), 8));
    REQUIRE(nic.causes.size() + nic.other_causes == slow.causes.size());
    REQUIRE(std::is_sorted(nic.causes.begin(), nic.causes.end(),
                           [](const Cause& a, const Cause& b) { return a.bytes > b.bytes; }));
  }
  REQUIRE(told == carried);
}

TEST_CASE("what sets the bound is a rollout that wants it, or trainers that alone hold it",
          "[planner][explain][property]") {
  const int round = GENERATE(range(0, kRounds));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  const auto [job, plan] = Draw(round);
  const std::vector<NicLoad> loads = SlowLoads(job, plan);
  const Binding binding = FindBinding(plan, loads);
  switch (binding.kind) {
    case Binding::Kind::kNothing:
      REQUIRE(plan.bounds.direct == 0);
      break;
    case Binding::Kind::kIngress:
      REQUIRE(binding.bytes == plan.bounds.direct);
      REQUIRE(binding.workers == ThatGet(binding.bytes, loads));
      break;
    case Binding::Kind::kEgress: {
      const std::uint64_t trainers = binding.workers.size();
      REQUIRE(binding.bytes == HeldBy(binding.workers, job, plan));
      REQUIRE((binding.bytes + trainers - 1) / trainers == plan.bounds.direct);
      break;
    }
  }
}

TEST_CASE("of trainers that are full for themselves, the first is what sets the bound",
          "[planner][explain]") {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kFp32, {8, 4});
  builder.AddTensor("both", Dtype::kFp32, {2, 4});
  builder.Trainer(0, "n0").Holds("w", {0, 0}, {4, 4}).Holds("both", {0, 0}, {2, 4});
  builder.Trainer(1, "n1").Holds("w", {4, 0}, {8, 4}).Holds("both", {0, 0}, {2, 4});
  for (int engine = 0; engine < 3; ++engine) {
    builder.Rollout("engine" + std::to_string(engine), 0, "r" + std::to_string(engine))
        .Holds("w", {0, 0}, {8, 4});
  }
  const Job job = builder.Build();
  const Plan plan = MustSolve(job);
  const Binding binding = FindBinding(plan, NicLoads(job, plan));
  REQUIRE(binding == Binding{Binding::Kind::kEgress, {WorkerIndex(3)}, 192});
  REQUIRE(job.layouts[3].name.ToString() == "policy/0");
}

TEST_CASE("a tensor that lands in two places is not in one run there", "[planner][explain]") {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kFp32, {4, 4});
  builder.Trainer(0, "n0").Holds("w", {0, 0}, {4, 4});
  builder.Rollout("engine0", 0, "n1")
      .AddParam({.name = "a", .shape = {4, 4}, .pieces = {{"w", {0, 0}, {4, 4}, {0, 0}, {}}}})
      .AddParam({.name = "b", .shape = {4, 4}, .pieces = {{"w", {0, 0}, {4, 4}, {0, 0}, {}}}});
  builder.Rollout("engine0", 1, "n1").Holds("w", {0, 0}, {4, 2});
  const Job job = builder.Build();
  const MoveSurvey survey = SurveyMoves(job, MustSolve(job));
  REQUIRE(survey == MoveSurvey{2, {64, 32}, {32, 64}});
}

TEST_CASE("wire time is the fullest rail's, or the fullest GPU's inside its node",
          "[planner][explain]") {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kFp32, {4, 250});  // 4000 B
  builder.Trainer(0, "n0").Holds("w", {0, 0}, {4, 250});
  builder.Rollout("engine0", 0, "n0").Holds("w", {0, 0}, {4, 250});
  builder.Rollout("engine0", 1, "n1").Holds("w", {0, 0}, {2, 250});
  const Job job = builder.Build();
  const Explanation explanation = Explain(job, MustSolve(job), Rates{2, 100});
  REQUIRE(explanation.wire.has_value());
  REQUIRE(explanation.wire->rail == Approx(2000 / 2e9));
  REQUIRE(explanation.wire->nvlink == Approx(4000 / 100e9));
  REQUIRE(explanation.wire->bound == Approx(2000 / 2e9));
  REQUIRE(explanation.wire->seconds() == explanation.wire->rail);
  REQUIRE(Explain(job, MustSolve(job), Rates{200, 1}).wire->seconds() == Approx(4000 / 1e9));
  REQUIRE(explanation.out == Spread{2000, 2000, 2000});
  REQUIRE(explanation.in == Spread{0, 1000, 2000});
  REQUIRE(explanation.full_nics == 2);
  REQUIRE(explanation.bounds.front() == BoundRatio{"direct", 2000, 1});
}

TEST_CASE("a NIC names eight causes, and says how much all others are", "[planner][explain]") {
  const std::string names = "abcdefghij";
  test::JobBuilder builder;
  const auto hold_all = [&] {
    for (const char name : names) builder.Holds(std::string(1, name), {0}, {std::int64_t{name}});
  };
  for (const char name : names)
    builder.AddTensor(std::string(1, name), Dtype::kFp32, {std::int64_t{name}});
  builder.Trainer(0, "n0");
  hold_all();
  builder.Rollout("engine0", 0, "n1");
  hold_all();
  const Job job = builder.Build();
  const BusyNic nic = Explain(job, MustSolve(job), std::nullopt).busiest.front();
  REQUIRE(nic.causes.size() == 8);
  REQUIRE(nic.causes.front() == Cause{"j", 1, std::uint64_t{4} * 'j'});
  REQUIRE(nic.other_causes == 2);
  REQUIRE(nic.other_bytes == std::uint64_t{4} * ('a' + 'b'));
}

TEST_CASE("a plan that crosses no NIC has nothing that sets its bound", "[planner][explain]") {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kFp32, {4, 4});
  builder.Trainer(0, "n0").Holds("w", {0, 0}, {4, 4});
  builder.Rollout("engine0", 0, "n0").Holds("w", {0, 0}, {4, 4});
  const Job job = builder.Build();
  const Explanation explanation = Explain(job, MustSolve(job), std::nullopt);
  REQUIRE(explanation.binding == Binding{});
  REQUIRE(explanation.busiest.empty());
  REQUIRE(explanation.replicas.empty());
  REQUIRE(explanation.full_nics == 0);
  REQUIRE(explanation.bounds.front().max_over_bound == 1);
}

TEST_CASE("what an engine passes on leaves its NIC, and is no replica that is used",
          "[planner][explain][fan-out]") {
  test::JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {60});
  builder.Trainer(0, "t").Holds("w", {0}, {60});
  for (int e = 0; e < 3; ++e) {
    builder.Rollout("e" + std::to_string(e), 0, "n" + std::to_string(e)).Holds("w", {0}, {60});
  }
  const Job job = builder.Build();
  const Plan plan = MustSolve(job, {.fan_out = true});
  const Explanation explanation = Explain(job, plan, std::nullopt);
  CHECK(explanation.out.max == 60);
  CHECK(explanation.bounds.front() == BoundRatio{"fan_out", 60, 1});
  CHECK(explanation.bounds[1] == BoundRatio{"direct", 180, 60.0 / 180});
  CHECK_FALSE(explanation.binding.has_value());
  CHECK(explanation.replicas == std::vector{ReplicaUse{1, 60, 1, 1}});
  CHECK(explanation.busiest.size() == 5);  // one trainer's out, two engines' out, three engines' in
}

TEST_CASE("a family of tensors leaves out parts of a name that are numbers, and which projection",
          "[planner][explain]") {
  REQUIRE(TensorFamily("model.layers.17.mlp.experts.3.up_proj.weight") ==
          "model.layers.*.mlp.experts.*.*_proj.weight");
  REQUIRE(TensorFamily("model.layers.0.self_attn.kv_a_proj_with_mqa.weight") ==
          "model.layers.*.self_attn.kv_a_proj_with_mqa.weight");
  REQUIRE(TensorFamily("lm_head.weight") == "lm_head.weight");
  REQUIRE(TensorFamily("linear_fc1.weight7") == "linear_fc1.weight7");
  REQUIRE(TensorFamily("..0") == "..*");
}

}  // namespace
}  // namespace wb
