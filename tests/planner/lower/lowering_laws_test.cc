// Plans and schedules together, against a walk over single elements: every destination byte that a
// piece covers gets its value, every other byte stays as it was.
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "planner/lower/schedule.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/byte_walk.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

void MoveAndCompare(const Job& job, std::uint64_t chunk_bytes) {
  const std::vector<test::Memory> memory =
      test::Execute(job, test::MustSolve(job), chunk_bytes, test::HashValue);
  for (std::size_t w = 0; w < job.layouts.size(); ++w) {
    INFO("worker " << job.layouts[w].name.ToString());
    REQUIRE(memory[w] == test::Filled(job, job.layouts[w], test::HashValue));
  }
}

TEST_CASE("plan and schedule bring every element to every place, and touch nothing else",
          "[planner][lower][property]") {
  const std::uint64_t chunk_bytes = GENERATE(as<std::uint64_t>(), 7, 64, 1000, 10923, 1 << 20);
  const int round = GENERATE(range(0, 60));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " chunk " << chunk_bytes);
  std::mt19937_64 rng = test::TestRng(round);
  MoveAndCompare(test::RandomJob(rng), chunk_bytes);
}

TEST_CASE("tensors of all element sizes move", "[planner][lower]") {
  test::JobBuilder builder;
  const auto each_dtype = [&](auto&& add) {
    for (int d = 0; d <= static_cast<int>(Dtype::kBool); ++d) add(static_cast<Dtype>(d));
  };
  each_dtype([&](Dtype dtype) { builder.AddTensor(std::string(DtypeName(dtype)), dtype, {6, 5}); });
  for (int r = 0; r < 2; ++r) {
    builder.Trainer(r, "n0");
    each_dtype([&](Dtype dtype) {
      builder.Holds(std::string(DtypeName(dtype)), {3 * r, 0}, {3 * r + 3, 5});
    });
  }
  for (int r = 0; r < 2; ++r) {
    builder.Rollout("e", r, "n1");
    each_dtype([&](Dtype dtype) {
      builder.Holds(std::string(DtypeName(dtype)), {0, 2 * r}, {6, r == 0 ? 2 : 5});
    });
  }
  const std::uint64_t chunk_bytes = GENERATE(as<std::uint64_t>(), 7, 64, 1 << 20);
  MoveAndCompare(builder.Build(), chunk_bytes);
}

TEST_CASE("tensors of mixed dtypes back to back move whole at any chunk size",
          "[planner][lower][field][case-55]") {
  test::JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp16, {3})
      .AddTensor("b", Dtype::kFp32, {1})
      .AddTensor("c", Dtype::kUint8, {5})
      .AddTensor("d", Dtype::kInt64, {2});
  builder.Trainer(0, "n0");
  const auto flat = [&] {  // offsets 0, 6, 10, 15: nothing is aligned
    builder.AddParam({.name = "a", .shape = {3}, .pieces = {{"a", {0}, {3}}}, .buffer = "flat"})
        .AddParam({.name = "b",
                   .shape = {1},
                   .pieces = {{"b", {0}, {1}}},
                   .buffer = "flat",
                   .offset_bytes = 6})
        .AddParam({.name = "c",
                   .shape = {5},
                   .pieces = {{"c", {0}, {5}}},
                   .buffer = "flat",
                   .offset_bytes = 10})
        .AddParam({.name = "d",
                   .shape = {2},
                   .pieces = {{"d", {0}, {2}}},
                   .buffer = "flat",
                   .offset_bytes = 15});
  };
  flat();
  builder.Rollout("e", 0, "n1");
  flat();
  builder.Rollout("e", 1, "n1");
  for (const char* name : {"d", "c", "b", "a"}) {
    const std::int64_t extent = name[0] == 'a' ? 3 : name[0] == 'b' ? 1 : name[0] == 'c' ? 5 : 2;
    builder.Holds(name, {0}, {extent});
  }
  const std::uint64_t chunk_bytes = GENERATE(as<std::uint64_t>(), 7, 64, 1000, 10923);
  MoveAndCompare(builder.Build(), chunk_bytes);
}

}  // namespace
}  // namespace wb
