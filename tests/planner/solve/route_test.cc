// Who sends what.
#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "planner/solve/balance.h"
#include "planner/solve/validate.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using test::JobBuilder;
using test::MustSolve;

constexpr std::int64_t kMiB = 1 << 20;

TEST_CASE("a trainer on the destination's node goes first and costs no NIC", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp32, {8})
                      .Trainer(0, "n0")
                      .Holds("w", {0}, {8})
                      .Trainer(1, "n1")
                      .Holds("w", {0}, {8})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0}, {8})
                      .Build();
  const Plan plan = MustSolve(job);
  REQUIRE(AllMoves(plan).front().src == test::WorkerNamed(job, "policy/1"));
  REQUIRE(plan.intra_node_bytes == 32);
  REQUIRE(plan.max_nic_bytes() == 0);
  REQUIRE(plan.bound_bytes() == 0);
}

TEST_CASE("the identity layout on one node needs no network", "[planner][solve]") {
  JobBuilder builder;
  builder.AddTensor("w", Dtype::kFp32, {8, 4});
  for (int r = 0; r < 4; ++r) builder.Trainer(r, "n0").Holds("w", {2 * r, 0}, {2 * r + 2, 4});
  for (int r = 0; r < 4; ++r) builder.Rollout("e", r, "n0").Holds("w", {2 * r, 0}, {2 * r + 2, 4});
  const Plan plan = MustSolve(builder.Build());
  REQUIRE(AllMoves(plan).size() == 4);
  REQUIRE(plan.intra_node_bytes == plan.bytes);
}

TEST_CASE("replicas share the sending evenly", "[planner][solve]") {
  JobBuilder builder;
  for (int t = 0; t < 16; ++t) {
    builder.AddTensor("t" + std::to_string(10 + t), Dtype::kFp32, {64});
  }
  const auto all = [&] {
    for (int t = 0; t < 16; ++t) builder.Holds("t" + std::to_string(10 + t), {0}, {64});
  };
  for (int r = 0; r < 4; ++r) {
    builder.Trainer(r, "n0");
    all();
  }
  for (int r = 0; r < 4; ++r) {
    builder.Rollout("e", r, "n1");
    all();
  }
  const Plan plan = MustSolve(builder.Build());
  REQUIRE(plan.max_egress_bytes == 16 * 256);
  REQUIRE(plan.max_ingress_bytes == 16 * 256);
}

TEST_CASE("a slice is split along dimension 0 where that brings the fullest NIC down",
          "[planner][solve]") {
  // Four rollouts want 8 MiB that three trainers hold: 32 MiB over three NICs.
  JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {8 * 1024, 1024});
  for (int r = 0; r < 3; ++r) builder.Trainer(r, "n0").Holds("w", {0, 0}, {8 * 1024, 1024});
  for (int r = 0; r < 4; ++r) builder.Rollout("e", r, "n1").Holds("w", {0, 0}, {8 * 1024, 1024});
  const Job job = builder.Build();
  const Plan plan = MustSolve(job);
  REQUIRE(ValidatePlan(job, plan).ok());
  REQUIRE(plan.bound_bytes() == (32 * kMiB + 2) / 3);
  REQUIRE(plan.max_egress_bytes <= plan.bound_bytes() + plan.bound_bytes() / 1000);
  for (const Move& move : AllMoves(plan)) {
    REQUIRE(move.bytes >= static_cast<std::uint64_t>(kMiB));
    REQUIRE(move.box.extent(1) == 1024);
  }
  REQUIRE(AllMoves(plan).size() <= 6);
}

TEST_CASE("a slice below two parts of 1 MiB is never split", "[planner][solve]") {
  JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {2 * kMiB - 1});
  for (int r = 0; r < 2; ++r) builder.Trainer(r, "n0").Holds("w", {0}, {2 * kMiB - 1});
  for (int r = 0; r < 3; ++r) builder.Rollout("e", r, "n1").Holds("w", {0}, {2 * kMiB - 1});
  REQUIRE(AllMoves(MustSolve(builder.Build())).size() == 3);
}

TEST_CASE("a slice is not split when a NIC that receives is the bound anyway", "[planner][solve]") {
  JobBuilder builder;
  builder.AddTensor("w", Dtype::kInt8, {64 * kMiB});
  for (int r = 0; r < 4; ++r) builder.Trainer(r, "n0").Holds("w", {0}, {64 * kMiB});
  builder.Rollout("e", 0, "n1").Holds("w", {0}, {64 * kMiB});
  const Plan plan = MustSolve(builder.Build());
  REQUIRE(AllMoves(plan).size() == 1);
  REQUIRE(plan.bound_bytes() == 64 * kMiB);
}

TEST_CASE("a large contiguous tensor is one move per pair", "[planner][solve]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kBf16, {150'000, 1024})
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0}, {150'000, 1024})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0, 0}, {150'000, 1024})
                      .Build();
  REQUIRE(AllMoves(MustSolve(job)).size() == 1);
}

TEST_CASE("bytes that only a few hold leave room there by going elsewhere where they can",
          "[planner][solve]") {
  // Trainer 0 alone holds "own"; "shared" is at both: all of it must go to trainer 1.
  const Job job = JobBuilder()
                      .AddTensor("own", Dtype::kInt8, {100})
                      .AddTensor("shared", Dtype::kInt8, {100})
                      .Trainer(0, "n0")
                      .Holds("own", {0}, {100})
                      .Holds("shared", {0}, {100})
                      .Trainer(1, "n0")
                      .Holds("shared", {0}, {100})
                      .Rollout("e", 0, "n1")
                      .Holds("own", {0}, {100})
                      .Rollout("e", 1, "n1")
                      .Holds("shared", {0}, {100})
                      .Build();
  REQUIRE(MustSolve(job).max_egress_bytes == 100);
}

TEST_CASE("an exchange of parts helps where no gift does", "[planner][solve]") {
  // Loads 9 + 2 and 8: neither part of the fuller sender can be given away, but 9 and 8 swap.
  const std::vector<Holders> holders{{0, 1}, {0}};
  std::vector<SentPart> parts{{0, 0, 0, 0, 1, 9}, {1, 0, 1, 0, 1, 8}, {2, 1, 0, 0, 1, 2}};
  const std::vector<SentPart> after = Balancer(holders, {0, 0}, parts).Run(10);
  std::map<std::uint32_t, std::uint64_t> load;
  for (const SentPart& part : after) load[part.sender] += part.bytes();
  REQUIRE(load[0] == 10);
  REQUIRE(load[1] == 9);
}

}  // namespace
}  // namespace wb
