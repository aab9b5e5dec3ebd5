// Time of Solve and of lowering by tensors x ranks.
#include <cstdint>
#include <string>
#include <variant>

#include <benchmark/benchmark.h>

#include "planner/solve/planner.h"
#include "tests/support/cut_job.h"

namespace wb {
namespace {

// range(0) tensors, range(1) trainers that hold rows; as many rollouts hold columns or rows.
void Solve(benchmark::State& state, test::RankCut rollout) {
  const Job job = test::CutJob({.tensors = state.range(0),
                                .trainers = state.range(1),
                                .rollouts = state.range(1),
                                .rollout_cut = rollout});
  std::size_t moves = 0;
  for (auto _ : state) {
    const std::variant<Plan, Refusals> solved = wb::Solve(job);
    moves = std::get<Plan>(solved).moves.size();
    benchmark::DoNotOptimize(moves);
  }
  state.counters["moves"] = static_cast<double>(moves);
  state.SetComplexityN(state.range(0));
}

BENCHMARK_CAPTURE(Solve, rows_to_rows, test::RankCut::kRows)
    ->ArgsProduct({{2'000, 6'000, 20'000}, {8}})
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);
BENCHMARK_CAPTURE(Solve, rows_to_columns, test::RankCut::kColumns)
    ->ArgsProduct({{2'000, 20'000}, {8}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Solve, rows_to_replicas, test::RankCut::kReplicated)
    ->ArgsProduct({{2'000, 20'000}, {8}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Solve, one_tensor_many_ranks, test::RankCut::kColumns)
    ->ArgsProduct({{1}, {64, 256, 512}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wb

BENCHMARK_MAIN();
