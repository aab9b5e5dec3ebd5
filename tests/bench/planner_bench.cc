// What planning costs at the sizes that the field runs: one scenario a process, so that the peak of
// memory is its own. Prints a figure a line: name, value, unit, what it must be at most (tabs
// between; 0: nothing). Seconds are the processor's.
//
// The jobs are those of deploy/examples: reading a deployment file and laying it out counts.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sys/resource.h>

#include "planner/explain/explanation.h"
#include "planner/frameworks/deployment.h"
#include "planner/frameworks/hf_config.h"
#include "planner/lower/plan_part.h"
#include "planner/lower/schedule.h"
#include "planner/model/plan_moves.h"
#include "planner/solve/planner.h"
#include "proto/convert.h"
#include "tests/support/whole_file.h"

namespace wb {
namespace {

using test::ReadWholeFile;

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

// The job of an example with more trainers, engines and nodes.
Job JobOf(const std::string& example, const std::function<void(Deployment&)>& change) {
  const std::string folder = WB_EXAMPLES "/";
  const std::string file = folder + example + ".yaml";
  auto deployment = std::get<Deployment>(ParseDeployment(ReadWholeFile(file), file));
  change(deployment);
  const std::string config = folder + deployment.config;
  return std::get<Job>(LayOut(deployment,
                              std::get<HfConfig>(ParseHfConfig(ReadWholeFile(config), config)),
                              HfConfig::kMaxLayers));
}

// With so many times as many.
Job JobOf(const std::string& example, std::int64_t times) {
  return JobOf(example, [times](Deployment& deployment) {
    std::get<MegatronLayout>(deployment.trainer).ranks *= times;
    for (EngineSet& set : deployment.rollouts) set.engines *= times;
    deployment.cluster.nodes *= times;
  });
}

struct Solved {
  Job job;
  Plan plan;
};

Solved PlanFrom(const std::string& example, std::int64_t times) {
  Solved solved{JobOf(example, times), {}};
  solved.plan = Planned(Solve(solved.job));
  return solved;
}

// Must be at most.
struct Limits {
  double seconds = 0;
  double mib = 0;
};

// Slices as often as some worker wants them.
std::size_t CountSlices(const Plan& plan) {
  std::size_t slices = 0;
  for (const PlanGroup& group : plan.groups) {
    for (const PlanReceiver& receiver : group.receivers) {
      slices += plan.demands[receiver.demand].end - plan.demands[receiver.demand].begin;
    }
  }
  return slices;
}

double MaxOverBound(const Plan& plan) {
  return static_cast<double>(plan.max_nic_bytes()) / static_cast<double>(plan.bound_bytes());
}

void PrintWhole(const std::string& name,
                const std::string& example,
                const Limits& must,
                std::int64_t times = 1) {
  Solved solved;
  Print(name + ", from deployment file to checked plan",
        Seconds([&] { solved = PlanFrom(example, times); }), "s", must.seconds);
  PrintPeak(name, must.mib);
  Print(name + ", max NIC bytes over bound", MaxOverBound(solved.plan), "", 1.02);
  Print(name + ", slices", static_cast<double>(CountSlices(solved.plan)), "", 0);
}

// What `wbctl plan --summary` does beside planning.
void ExplainIt(const std::string& name, const std::string& example, double must_seconds) {
  const Solved solved = PlanFrom(example, 1);
  Print(name + ", explained",
        Seconds([&] { (void)Explain(solved.job, solved.plan, std::nullopt); }), "s", must_seconds);
}

void OneJoins(const std::string& name, const std::string& example, double must_seconds) {
  const Job job = JobOf(example, 1);
  Job before = job;
  std::erase_if(before.layouts,
                [](const Layout& layout) { return layout.name.group == "engine3"; });
  const Plan plan = Planned(Solve(before));
  Print(name + ", one engine joins", Seconds([&] {
          Planned(Solve(job, PreviousPlan{before, plan}));
        }),
        "s", must_seconds);
}

// Where trainers' egress is the bound by far, with engines that pass on what they get, and without.
void FanOut() {
  const std::string name = "Moonlight, 8 to 16 x 8";
  const Job job = JobOf("moonlight", [](Deployment& deployment) {
    deployment.rollouts.front().engines = 16;
    deployment.cluster.nodes = 17;
  });
  Plan plan;
  Print(name + ", with fan-out",
        Seconds([&] { plan = Planned(Solve(job, std::nullopt, {.fan_out = true})); }), "s", 0.4);
  Print(name + ", with fan-out, max NIC bytes over bound", MaxOverBound(plan), "", 1.10);
  const Plan direct = Planned(Solve(job));
  Print(name + ", direct, max NIC bytes over the bound with fan-out",
        static_cast<double>(direct.max_nic_bytes()) / static_cast<double>(plan.bound_bytes()), "",
        0);
}

// The parts of one daemon for all groups, as they are sent and as it lowers them for its workers.
void OneDaemon(const std::string& name, const std::string& node) {
  const Solved solved = PlanFrom("kimi-k2", 1);
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
  const Limits canonical{0.4, 512};
  const Limits large{5, 1024};
  if (scenario == "moonlight") PrintWhole("Moonlight", "moonlight", canonical);
  if (scenario == "qwen3-30b") PrintWhole("Qwen3-30B", "qwen3-30b", canonical);
  if (scenario == "qwen3-235b") PrintWhole("Qwen3-235B, 64 to 2 x 32", "qwen3-235b", canonical);
  if (scenario == "kimi-k2") PrintWhole("Kimi-K2, 256 to 8 x 32", "kimi-k2", {1.0, 512});
  if (scenario == "kimi-k2-joins") OneJoins("Kimi-K2", "kimi-k2", 0.1);
  if (scenario == "kimi-k2-explained") ExplainIt("Kimi-K2", "kimi-k2", 0.5);
  if (scenario == "1024") PrintWhole("1024 to 32 x 32", "kimi-k2", large, 4);
  if (scenario == "2048") PrintWhole("2048 to 64 x 32", "kimi-k2", large, 8);
  if (scenario == "4096") PrintWhole("4096 to 128 x 32", "kimi-k2", large, 16);
  if (scenario == "fan-out") FanOut();
  if (scenario == "trainer-daemon") OneDaemon("Kimi-K2, a trainers' daemon", "node3");
  if (scenario == "rollout-daemon") OneDaemon("Kimi-K2, a rollouts' daemon", "node35");
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
