// What planning costs at the sizes that the field runs: one scenario a process, so that the peak of
// memory is its own. Prints a figure a line: name, value, unit, what it must be at most (tabs
// between). Seconds are the processor's.
//
// The layouts come from tests/support/canonical_job.h; making them counts, as a deployment file's
// would.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sys/resource.h>

#include "planner/lower/plan_part.h"
#include "planner/lower/schedule.h"
#include "planner/model/plan_moves.h"
#include "planner/solve/planner.h"
#include "proto/convert.h"
#include "tests/support/canonical_job.h"

namespace wb {
namespace {

using test::CanonicalJob;
using test::DeploymentShape;

constexpr double kMiB = 1 << 20;

void Print(const std::string& name, double value, const char* unit, double must) {
  std::printf("%s\t%.6g\t%s\t%g\n", name.c_str(), value, unit, must);
}

void PrintPeak(const std::string& name, double must) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Print(name + ", peak", static_cast<double>(usage.ru_maxrss) / 1024, "MiB", must);
}

// Seconds of this process's processor that `work` takes.
double Seconds(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Plan Planned(std::variant<Plan, Refusals> solved) {
  return std::get<Plan>(std::move(solved));
}

struct Solved {
  Job job;
  Plan plan;
};

Solved PlanFrom(const DeploymentShape& shape) {
  Solved solved{CanonicalJob(shape), {}};
  solved.plan = Planned(Solve(solved.job));
  return solved;
}

void PrintWhole(const std::string& name,
                const DeploymentShape& shape,
                double must_seconds,
                double must_mib) {
  Solved solved;
  Print(name + ", layouts and plan", Seconds([&] { solved = PlanFrom(shape); }), "s", must_seconds);
  PrintPeak(name, must_mib);
  Print(name + ", max NIC bytes over bound",
        static_cast<double>(solved.plan.max_nic_bytes()) /
            static_cast<double>(solved.plan.bound_bytes()),
        "", 1.02);
}

void OneJoins(const std::string& name, const DeploymentShape& shape, double must_seconds) {
  const Job job = CanonicalJob(shape);
  Job before = job;
  std::erase_if(before.layouts,
                [](const Layout& layout) { return layout.name.group == "engine003"; });
  const Plan plan = Planned(Solve(before));
  Print(name + ", one engine joins", Seconds([&] {
          Planned(Solve(job, PreviousPlan{before, plan}));
        }),
        "s", must_seconds);
}

DeploymentShape KimiTimes(std::int64_t times) {
  DeploymentShape shape = test::KimiK2();
  shape.trainers *= times;
  shape.engines *= times;
  return shape;
}

// The parts of one daemon for all groups, as they are sent and as it lowers them for its workers.
void OneDaemon(const std::string& name, const std::string& node) {
  const Solved solved = PlanFrom(test::KimiK2());
  std::vector<PlanPart> parts;
  const double making = Seconds([&] {
    for (const PlanGroup& group : solved.plan.groups) {
      parts.push_back(MakePlanPart(solved.job, solved.plan, group.name, node));
    }
  });
  std::size_t bytes = 0;
  for (const PlanPart& part : parts) bytes += ToProto(part).ByteSizeLong();
  const double lowering = Seconds([&] {
    for (const PlanPart& part : parts) {
      std::map<std::pair<WorkerIndex, WorkerIndex>, std::vector<Move>> pairs;
      for (const Move& move : part.moves) pairs[{move.src, move.dst}].push_back(move);
      std::map<WorkerIndex, Layout> bound;
      for (const auto& [pair, moves] : pairs) {
        const bool sends = part.workers[pair.first.value()].node == node;
        const WorkerIndex own = sends ? pair.first : pair.second;
        const auto [layout, fresh] = bound.try_emplace(own);
        if (fresh) {
          for (const Layout& candidate : solved.job.layouts) {
            if (candidate.name != part.workers[own.value()].name) continue;
            layout->second = *BindLayout({solved.job.name, solved.job.tensors, candidate}, part);
          }
        }
        const absl::StatusOr<LocalStream> stream =
            LowerStream(moves, part.tensors, layout->second,
                        sends ? StreamEnd::kSource : StreamEnd::kDestination, kDefaultChunkBytes);
        if (!stream.ok()) std::abort();
      }
    }
  });
  Print(name + ", its parts made", making, "s", 0.2);
  Print(name + ", its parts sent", static_cast<double>(bytes) / kMiB, "MiB", 8);
  Print(name + ", lowered there", lowering, "s", 0.2);
}

void Run(const std::string& scenario) {
  if (scenario == "moonlight") PrintWhole("Moonlight", test::Moonlight(), 0.4, 512);
  if (scenario == "qwen3-30b") PrintWhole("Qwen3-30B", test::Qwen3_30B(), 0.4, 512);
  if (scenario == "qwen3-235b")
    PrintWhole("Qwen3-235B, 64 to 2 x 32", test::Qwen3_235B(), 0.4, 512);
  if (scenario == "kimi-k2") PrintWhole("Kimi-K2, 256 to 8 x 32", test::KimiK2(), 1.0, 512);
  if (scenario == "kimi-k2-joins") OneJoins("Kimi-K2", test::KimiK2(), 0.1);
  if (scenario == "1024") PrintWhole("1024 to 32 x 32", KimiTimes(4), 5, 1024);
  if (scenario == "2048") PrintWhole("2048 to 64 x 32", KimiTimes(8), 5, 1024);
  if (scenario == "4096") PrintWhole("4096 to 128 x 32", KimiTimes(16), 5, 1024);
  if (scenario == "trainer-daemon") OneDaemon("Kimi-K2, a trainers' daemon", "t0003");
  if (scenario == "rollout-daemon") OneDaemon("Kimi-K2, a rollouts' daemon", "r0003");
}

}  // namespace
}  // namespace wb

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: planner_bench SCENARIO\n");
    return 3;
  }
  wb::Run(argv[1]);
  return 0;
}
