// Strided copies and the checksum, on one thread, against memcpy of as many bytes in the same run.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <benchmark/benchmark.h>

#include "transport/copy/byte_runs.h"
#include "transport/copy/checksum.h"

namespace wb {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kChunk = std::uint64_t{1} << 20;
constexpr std::uint64_t kChunks = 64;  // far more than a cache holds

/// GB/s of memcpy, a chunk at a time, through buffers of the size that the benchmarks walk.
double MemcpyRate() {
  static const double rate = [] {
    const Bytes from(kChunk * kChunks, std::byte{1});
    Bytes to(kChunk * kChunks);
    double best = 0;
    for (int round = 0; round < 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      for (std::uint64_t i = 0; i < kChunks; ++i) {
        std::memcpy(to.data() + i * kChunk, from.data() + i * kChunk, kChunk);
        benchmark::ClobberMemory();
      }
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      best = std::max(best, static_cast<double>(to.size()) / took.count() / 1e9);
    }
    return best;
  }();
  return rate;
}

void Report(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kChunk));
  state.counters["limit_gb_per_s"] = MemcpyRate();
}

/// A chunk of a matrix of which every other run is taken: runs of `run` bytes, two apart.
ByteBlock EveryOther(std::uint64_t run, std::uint64_t chunk) {
  return {chunk * 2 * kChunk, run, {{kChunk / run, 2 * run}}};
}

void GatherRuns(benchmark::State& state) {
  const auto run = static_cast<std::uint64_t>(state.range(0));
  const Bytes memory(2 * kChunk * kChunks, std::byte{1});
  Bytes packed(kChunk);
  std::uint64_t chunk = 0;
  for ([[maybe_unused]] const auto& _ : state) {
    Gather(memory, EveryOther(run, chunk++ % kChunks), 0, packed);
    benchmark::ClobberMemory();
  }
  Report(state);
}

void ScatterRuns(benchmark::State& state) {
  const auto run = static_cast<std::uint64_t>(state.range(0));
  Bytes memory(2 * kChunk * kChunks);
  const Bytes packed(kChunk, std::byte{1});
  std::uint64_t chunk = 0;
  for ([[maybe_unused]] const auto& _ : state) {
    Scatter(packed, EveryOther(run, chunk++ % kChunks), 0, memory);
    benchmark::ClobberMemory();
  }
  Report(state);
}

/// A transposed matrix of BF16, a column after the other: the worst that a piece with `axes` can
/// be.
void GatherTransposed(benchmark::State& state) {
  constexpr std::uint64_t kSide = 8192;
  const Bytes memory(kSide * kSide * 2, std::byte{1});
  const ByteBlock columns{0, 2, {{kSide, 2}, {kSide, kSide * 2}}};
  Bytes packed(kChunk);
  std::uint64_t begin = 0;
  for ([[maybe_unused]] const auto& _ : state) {
    Gather(memory, columns, begin, packed);
    begin = (begin + kChunk) % memory.size();
    benchmark::ClobberMemory();
  }
  Report(state);
}

void SumChunk(benchmark::State& state) {
  const Bytes memory(kChunk * kChunks, std::byte{1});
  std::uint64_t chunk = 0;
  for ([[maybe_unused]] const auto& _ : state) {
    benchmark::DoNotOptimize(
        Checksum(std::span(memory).subspan(chunk++ % kChunks * kChunk, kChunk)));
  }
  Report(state);
}

BENCHMARK(GatherRuns)->Arg(2)->Arg(16)->Arg(64)->Arg(512)->Arg(4096)->Arg(65536);
BENCHMARK(ScatterRuns)->Arg(2)->Arg(16)->Arg(64)->Arg(512)->Arg(4096)->Arg(65536);
BENCHMARK(GatherTransposed);
BENCHMARK(SumChunk);

}  // namespace
}  // namespace wb

BENCHMARK_MAIN();
