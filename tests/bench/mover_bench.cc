// Two movers of one process move 256 MiB over UCX and TCP on the loopback interface, checksums on:
// from Go to the last byte landed and checked, against one thread's memcpy of as many bytes in the
// same run. Arguments: bytes of a run at the source and at the destination (0: one run), chunks in
// flight, copy threads of each mover, and whether chunks are checked.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <spdlog/spdlog.h>

#include "daemon/move/mover.h"
#include "planner/base/mutex.h"
#include "transport/memory/region.h"
#include "transport/ucx/ucx_environment.h"

namespace wb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMoved = std::uint64_t{256} << 20;
constexpr RegionId kRegion{1};

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << '\n';
  std::exit(1);
}

class Events final : public MoverEvents {
 public:
  void OnPrepared(AttemptId attempt) override { Note('p', attempt); }
  void OnStaged(AttemptId attempt, const BytesByPath& /*bytes*/) override { Note('s', attempt); }
  void OnMeasured(AttemptId /*attempt*/, const AttemptTimes& /*times*/) override {}
  void OnFailed(AttemptId /*attempt*/, const absl::Status& status) override { Check(status); }
  void OnEnded(AttemptId attempt) override { Note('e', attempt); }
  void OnSnapshot(SnapshotId /*snapshot*/, const absl::Status& status) override { Check(status); }

  void Await(char what, AttemptId attempt) {
    const MutexLock lock(mu_);
    while (!told_.contains({what, attempt})) {
      if (!changed_.WaitUntil(mu_, Clock::now() + std::chrono::minutes(1))) std::exit(1);
    }
  }

 private:
  void Note(char what, AttemptId attempt) {
    const MutexLock lock(mu_);
    told_.emplace(what, attempt);
    changed_.NotifyAll();
  }
  Mutex mu_;
  CondVar changed_;
  std::set<std::pair<char, AttemptId>> told_ ABSL_GUARDED_BY(mu_);
};

/// kMoved bytes in runs that are as far apart as they are long, or in one.
ByteBlock BlockOf(std::uint64_t run) {
  if (run == 0) return {0, kMoved, {}};
  return {0, run, {{kMoved / run, 2 * run}}};
}

BoundStream StreamOf(const ByteBlock& block) {
  LocalStream stream;
  stream.bytes = kMoved;
  for (std::uint64_t begin = 0; begin < kMoved; begin += kDefaultChunkBytes) {
    stream.chunks.push_back(
        {kDefaultChunkBytes, {{0, block, begin, begin + kDefaultChunkBytes}}, {}});
  }
  return {std::move(stream), {kRegion}, {0}};
}

struct Daemon {
  Daemon(const std::string& node, MoverOptions options) : name(node) {
    options.node = node;
    options.incarnation = Incarnation(1);
    options.interface = "lo";
    absl::StatusOr<std::unique_ptr<Mover>> started = Mover::Start(options, events);
    Check(started.status());
    mover = *std::move(started);
    absl::StatusOr<Region> memory = Region::AllocateArena(2 * kMoved);
    Check(memory.status());
    std::memset(memory->host_memory()->data(), 7, memory->bytes());
    mover->AddRegion(kRegion, *std::move(memory));
  }
  PeerAddress Address() const { return {name, Incarnation(1), mover->address()}; }

  std::string name;
  Events events;
  std::unique_ptr<Mover> mover;
};

double MemcpyRate() {
  const std::vector<char> from(kMoved, 1);
  std::vector<char> into(kMoved, 0);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = Clock::now();
    std::memcpy(into.data(), from.data(), kMoved);
    const std::chrono::duration<double> took = Clock::now() - start;
    benchmark::DoNotOptimize(into.data());
    best = std::max(best, static_cast<double>(kMoved) / took.count() / 1e9);
  }
  return best;
}

void Deliver(benchmark::State& state) {
  MoverOptions options;
  options.chunks_in_flight = static_cast<int>(state.range(2));
  options.copy_threads = static_cast<int>(state.range(3));
  options.verify = state.range(4) != 0;
  Daemon source("t", options);
  Daemon target("r", options);
  const BoundStream from = StreamOf(BlockOf(static_cast<std::uint64_t>(state.range(0))));
  const BoundStream to = StreamOf(BlockOf(static_cast<std::uint64_t>(state.range(1))));
  std::uint64_t number = 0;
  const auto deliver = [&] {
    AttemptWork sends;
    sends.attempt = AttemptId(++number);
    sends.peers = {target.Address()};
    AttemptWork receives = sends;
    receives.peers = {source.Address()};
    sends.out.push_back({0, "r", from});
    receives.in.push_back({0, "t", to});
    const AttemptId attempt = sends.attempt;
    source.mover->Prepare(std::move(sends));
    target.mover->Prepare(std::move(receives));
    source.events.Await('p', attempt);
    target.events.Await('p', attempt);
    const auto start = Clock::now();
    target.mover->Go(attempt);
    source.mover->Go(attempt);
    target.events.Await('s', attempt);
    const std::chrono::duration<double> took = Clock::now() - start;
    source.mover->Finish(attempt);
    target.mover->Finish(attempt);
    source.events.Await('e', attempt);
    target.events.Await('e', attempt);
    return took.count();
  };
  deliver();  // wires up
  for ([[maybe_unused]] const auto& _ : state) state.SetIterationTime(deliver());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kMoved));
  state.counters["limit_gb_per_s"] = MemcpyRate();
}

BENCHMARK(Deliver)
    ->ArgNames({"from", "to", "window", "threads", "check"})
    ->Args({0, 0, 4, 1, 1})
    ->Args({0, 0, 4, 1, 0})
    ->Args({4096, 0, 4, 1, 1})
    ->Args({0, 4096, 4, 1, 1})
    ->Args({4096, 4096, 4, 1, 1})
    ->Args({512, 512, 4, 1, 1})
    ->Args({0, 0, 2, 1, 1})
    ->Args({0, 0, 8, 1, 1})
    ->Args({0, 0, 4, 0, 1})
    ->Args({4096, 4096, 4, 0, 1})
    ->Args({4096, 4096, 8, 2, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime();

}  // namespace
}  // namespace wb

int main(int argc, char** argv) {
  wb::DropInheritedUcxVariables();
  spdlog::set_level(spdlog::level::warn);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
