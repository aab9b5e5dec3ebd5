#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "planner/model/registration.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

Registration Worker(Role role, std::string group, std::int32_t rank) {
  Registration registration;
  registration.job = "job";
  registration.layout.role = role;
  registration.layout.name = {std::move(group), rank};
  registration.layout.node = "n0";
  return registration;
}

// Gives the worker a whole 1-D tensor in a param of its own.
void Hold(Registration& registration, const Tensor& tensor) {
  Layout& layout = registration.layout;
  const auto index = static_cast<std::uint32_t>(layout.params.size());
  registration.tensors.push_back(tensor);
  layout.buffers.Edit().push_back({tensor.name, 64});
  layout.params.Edit().push_back({tensor.name, tensor.dtype, tensor.shape, {1}, index, 0, false});
  layout.pieces.Edit().push_back(
      {TensorId(index), *Box::Create({0}, tensor.shape), index, index, 0, {1}, {0}, {0}});
}

Tensor Vector(std::string name, Dtype dtype = Dtype::kBf16, std::int64_t extent = 4) {
  return {std::move(name), dtype, {extent}, false};
}

std::vector<std::string> Texts(const std::vector<Registration>& registrations) {
  const std::variant<Job, Refusals> job = MakeJob(registrations);
  REQUIRE(std::holds_alternative<Refusals>(job));
  std::vector<std::string> texts;
  for (const Refusal& refusal : std::get<Refusals>(job)) texts.push_back(refusal.text);
  return texts;
}

using Wanted = std::vector<std::string>;

TEST_CASE("MakeJob puts workers and tensors in order, and pieces name the job's tensors",
          "[model]") {
  std::vector<Registration> registrations = {Worker(Role::kRollout, "engine", 0),
                                             Worker(Role::kTrainer, "policy", 1),
                                             Worker(Role::kTrainer, "policy", 0)};
  Hold(registrations[0], Vector("b"));
  Hold(registrations[0], Vector("c"));
  Hold(registrations[1], Vector("c"));
  Hold(registrations[2], Vector("a"));
  Hold(registrations[2], Vector("b"));
  const Job job = std::get<Job>(MakeJob(registrations));
  CHECK(job.name == "job");
  REQUIRE(job.tensors.size() == 3);
  CHECK(job.tensors[0].name == "a");
  CHECK(job.tensors[2].name == "c");
  REQUIRE(job.layouts.size() == 3);
  CHECK(job.layouts[0].name.ToString() == "engine/0");
  CHECK(job.layouts[1].name.ToString() == "policy/0");
  CHECK(job.layouts[2].name.ToString() == "policy/1");
  CHECK(job.layouts[0].pieces[1].tensor == TensorId(2));
  CHECK(job.layouts[2].pieces[0].tensor == TensorId(2));
}

TEST_CASE("MakeJob does not depend on the order in which workers come", "[model][property]") {
  std::vector<Registration> registrations;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    registrations.push_back(Worker(Role::kTrainer, "policy", rank));
    registrations.push_back(Worker(Role::kRollout, "engine", rank));
    Hold(registrations.back(), Vector("t"));
  }
  const Job wanted = std::get<Job>(MakeJob(registrations));
  const int round = GENERATE(range(0, 10));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  std::shuffle(registrations.begin(), registrations.end(), rng);
  CHECK(std::get<Job>(MakeJob(registrations)) == wanted);
}

TEST_CASE("MakeJob refuses a job without workers, trainers or rollouts", "[model]") {
  const std::string no_trainer = "job has no trainer group, want one";
  const std::string no_rollout = "job has no rollout group, want at least one";
  CHECK(Texts({}) == Wanted{no_trainer, no_rollout});
  CHECK(Texts({Worker(Role::kTrainer, "policy", 0)}) == Wanted{no_rollout});
  CHECK(Texts({Worker(Role::kRollout, "engine", 0)}) == Wanted{no_trainer});
}

TEST_CASE("MakeJob refuses two trainer groups, naming both", "[model]") {
  CHECK(Texts({Worker(Role::kTrainer, "policy", 0), Worker(Role::kTrainer, "critic", 0),
               Worker(Role::kRollout, "engine", 0)}) ==
        Wanted{"job has 2 trainer groups (critic, policy), want one"});
}

TEST_CASE("MakeJob refuses a group of both roles", "[model]") {
  CHECK(Texts({Worker(Role::kTrainer, "policy", 0), Worker(Role::kRollout, "policy", 1),
               Worker(Role::kRollout, "engine", 0)}) ==
        Wanted{"worker policy/1 is a ROLLOUT and policy/0 a TRAINER, want one role in a group"});
}

TEST_CASE("MakeJob refuses a rank twice", "[model]") {
  CHECK(Texts({Worker(Role::kTrainer, "policy", 0), Worker(Role::kTrainer, "policy", 0),
               Worker(Role::kRollout, "engine", 0)}) ==
        Wanted{"worker policy/0 is there twice, want each rank of a group once"});
}

TEST_CASE("MakeJob names the ranks that are missing", "[model]") {
  CHECK(Texts({Worker(Role::kTrainer, "policy", 0), Worker(Role::kRollout, "engine", 1),
               Worker(Role::kRollout, "engine", 5)}) ==
        Wanted{"group engine: missing rank 0, 2..4, want ranks 0..5 without gap"});
}

TEST_CASE("MakeJob tells a gap of two billion ranks without counting it", "[model]") {
  CHECK(
      Texts({Worker(Role::kTrainer, "policy", 0), Worker(Role::kRollout, "engine", 2147483647)}) ==
      Wanted{"group engine: missing rank 0..2147483646, want ranks 0..2147483647 without gap"});
  std::vector<Registration> holey = {Worker(Role::kTrainer, "policy", 0)};
  for (std::int32_t i = 1; i <= 20; ++i) holey.push_back(Worker(Role::kRollout, "engine", 2 * i));
  CHECK(Texts(holey) == Wanted{"group engine: missing rank 0..1, 3, 5, 7, 9, 11, 13, 15 and more, "
                               "want ranks 0..40 without gap"});
}

TEST_CASE("MakeJob refuses workers of two jobs", "[model]") {
  Registration other = Worker(Role::kRollout, "engine", 0);
  other.job = "other";
  CHECK(
      Texts({Worker(Role::kTrainer, "policy", 0), other}) ==
      Wanted{
          "worker policy/0 is of job \"job\" and worker engine/0 of job \"other\", want one job"});
}

TEST_CASE("MakeJob refuses a tensor that two workers declare differently, naming both", "[model]") {
  Registration trainer = Worker(Role::kTrainer, "policy", 0);
  Registration rollout = Worker(Role::kRollout, "engine", 0);
  Hold(trainer, Vector("t", Dtype::kFp32));
  Hold(trainer, Vector("u"));
  Hold(rollout, Vector("t", Dtype::kBf16));
  Hold(rollout, Vector("u", Dtype::kBf16, 5));
  CHECK(Texts({trainer, rollout}) ==
        Wanted{"tensor t is FP32 [4] for worker policy/0 and BF16 [4] for worker engine/0, want "
               "the same",
               "tensor u is BF16 [4] for worker policy/0 and BF16 [5] for worker engine/0, want "
               "the same"});
}

TEST_CASE("Trainers promise identical overlaps together or not at all", "[model]") {
  Registration first = Worker(Role::kTrainer, "policy", 0);
  Registration second = Worker(Role::kTrainer, "policy", 1);
  Registration rollout = Worker(Role::kRollout, "engine", 0);
  Tensor promised = Vector("t");
  promised.overlap_identical = true;
  Hold(first, promised);
  Hold(rollout, Vector("t"));
  const Job job = std::get<Job>(MakeJob(std::vector{first, second, rollout}));
  CHECK(job.tensors[0].overlap_identical);  // what the rollout says does not count
  Hold(second, Vector("t"));
  CHECK(Texts({first, second, rollout}) ==
        Wanted{"tensor t has overlap IDENTICAL for only one of workers policy/1 and policy/0, want "
               "the same promise of all its owners"});
}

TEST_CASE("MakeJob collects every reason", "[model]") {
  Registration trainer = Worker(Role::kTrainer, "policy", 1);
  Registration rollout = Worker(Role::kRollout, "engine", 1);
  Hold(trainer, Vector("t", Dtype::kFp32));
  Hold(rollout, Vector("t"));
  const Refusals refusals = std::get<Refusals>(MakeJob(std::vector{trainer, rollout}));
  REQUIRE(refusals.size() == 3);
  CHECK(refusals[0].kind == "rank");
  CHECK(refusals[0].worker == "engine");
  CHECK(refusals[1].kind == "rank");
  CHECK(refusals[2].kind == "dtype");
  CHECK(refusals[2].tensor == "t");
  CHECK(refusals[2].worker == "policy/1");
}

TEST_CASE("workers that register the same share their pieces in the job", "[model]") {
  std::vector<Registration> registrations = {
      Worker(Role::kTrainer, "policy", 0), Worker(Role::kRollout, "engine0", 0),
      Worker(Role::kRollout, "engine1", 0), Worker(Role::kRollout, "engine2", 0)};
  Hold(registrations[0], Vector("a"));
  Hold(registrations[0], Vector("b"));
  for (int engine = 1; engine < 4; ++engine)
    Hold(registrations[static_cast<std::size_t>(engine)], Vector("b"));
  registrations[3].layout.pieces.Edit()[0].offset_bytes = 8;
  const Job job = std::get<Job>(MakeJob(registrations));
  REQUIRE(job.layouts[0].pieces.data() == job.layouts[1].pieces.data());
  REQUIRE(job.layouts[0].pieces[0].tensor == TensorId(1));
  REQUIRE(job.layouts[2].pieces.data() != job.layouts[1].pieces.data());
}

TEST_CASE("each of several workers that declare a tensor wrongly in the same way is told",
          "[model][refused]") {
  std::vector<Registration> registrations = {Worker(Role::kTrainer, "a", 0),
                                             Worker(Role::kRollout, "b", 0),
                                             Worker(Role::kRollout, "c", 0)};
  Hold(registrations[0], Vector("x"));
  for (int engine = 1; engine < 3; ++engine) {
    Hold(registrations[static_cast<std::size_t>(engine)], Vector("x", Dtype::kFp32));
  }
  REQUIRE(Texts(registrations).size() == 2);
}

}  // namespace
}  // namespace wb
