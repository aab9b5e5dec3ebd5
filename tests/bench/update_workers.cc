// The workers of a layout or deployment file, each a thread of this process, joined to daemons that
// run already. Fills the trainers' memory, then runs an update for each line that comes in, and
// prints for each the seconds from the first call to the last return. At the end of its input it
// checks every byte that the rollouts hold.
//
// usage: update_workers FILE LAYERS NODE=SOCKET...   (LAYERS of a deployment file; 0: all)

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "client/wbctl/plan/planned_job.h"
#include "client/wbctl/rehearse/rehearsal_worker.h"
#include "planner/base/descriptor_limit.h"
#include "proto/convert.h"

namespace wb {
namespace {

constexpr std::int64_t kStepMs = 60'000;

[[noreturn]] void Fail(const std::string& text) {
  std::cerr << "update_workers: " << text << '\n';
  std::exit(1);
}

LoadedJob Load(const std::string& path, std::int64_t layers) {
  JobFile file;
  file.path = path;
  if (layers > 0) file.layers = layers;
  std::variant<PlannedJob, Refusals> planned = LoadPlannedJob(file);
  if (auto* const refusals = std::get_if<Refusals>(&planned)) Fail(refusals->front().text);
  return std::move(std::get<PlannedJob>(planned).loaded);
}

class Workers {
 public:
  Workers(const LoadedJob& loaded, const std::map<std::string, std::string>& sockets) {
    const std::vector<Layout>& layouts = loaded.job.layouts;
    std::map<std::string, std::int32_t> world_sizes;
    for (const Layout& layout : layouts) ++world_sizes[layout.name.group];
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      WorkerSpec spec;
      spec.socket = sockets.at(layouts[i].node);
      spec.world_size = world_sizes[layouts[i].name.group];
      spec.timeout_ms = kStepMs;
      spec.fill = Fill::kRow;
      const v1::Layout wire =
          loaded.wire.empty() ? ToProto(RegistrationOf(loaded.job, layouts[i])) : loaded.wire[i];
      absl::StatusOr<std::unique_ptr<RehearsalWorker>> worker =
          RehearsalWorker::Create(std::move(spec), wire.SerializeAsString());
      if (!worker.ok()) Fail(std::string(worker.status().message()));
      workers_.push_back(*std::move(worker));
    }
  }

  void Join() {
    OnAll([](RehearsalWorker& worker) { return worker.Join(); });
  }
  void Take(Step step, std::uint64_t version) {
    OnAll([&](RehearsalWorker& worker) {
      CheckResult check;
      absl::Status taken = worker.Take({step, version, {}}, check);
      if (taken.ok() && check.mismatches > 0) taken = absl::DataLossError("bytes differ");
      return taken;
    });
  }

 private:
  void OnAll(const std::function<absl::Status(RehearsalWorker&)>& call) {
    std::vector<std::thread> threads;
    threads.reserve(workers_.size());
    for (const std::unique_ptr<RehearsalWorker>& worker : workers_) {
      threads.emplace_back([&call, &worker] {
        const absl::Status status = call(*worker);
        if (!status.ok()) Fail(std::string(status.message()));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::unique_ptr<RehearsalWorker>> workers_;
};

void Run(const LoadedJob& loaded, const std::map<std::string, std::string>& sockets) {
  constexpr std::uint64_t kFilled = 1;  // all versions have the first one's contents
  Workers workers(loaded, sockets);
  workers.Join();
  workers.Take(Step::kPrepare, kFilled);
  std::puts("ready");
  std::fflush(stdout);
  std::uint64_t version = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    workers.Take(Step::kMove, ++version);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("%.6f\n", took.count());
    std::fflush(stdout);
  }
  workers.Take(Step::kCheck, kFilled);
}

}  // namespace
}  // namespace wb

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: update_workers FILE LAYERS NODE=SOCKET...\n", stderr);
    return 3;
  }
  wb::RaiseDescriptorLimit();
  std::map<std::string, std::string> sockets;
  for (int i = 3; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = std::min(argument.find('='), argument.size() - 1);
    sockets[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  wb::Run(wb::Load(argv[1], std::atoll(argv[2])), sockets);
  return 0;
}
