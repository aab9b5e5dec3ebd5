// Daemons that are stopped (SIGSTOP) while they may touch a worker's memory: what its calls say,
// how long the memory is kept, and that it is used again afterwards.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AddressOf;
using test::DaemonProcess;
using test::kListen;
using test::Slack;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using test::Update;
using weightbridge::MemoryState;
using weightbridge::Rollout;
using weightbridge::Trainer;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Shared buffers that this process has mapped.
int MappedBuffers() {
  std::ifstream maps("/proc/self/maps");
  int buffers = 0;
  for (std::string line; std::getline(maps, line);) {
    buffers += absl::StrContains(line, "memfd:weightbridge") ? 1 : 0;
  }
  return buffers;
}

/// A trainer on n0, which leads, and a rollout on n1, with as much between them as takes a while.
struct Cluster {
  TempFolder folder;
  DaemonProcess n0{{folder.path(), "n0", kListen, ""}};
  std::optional<DaemonProcess> n1;
  std::optional<TensorWorker> source;
  std::optional<TensorWorker> target;
  std::optional<weightbridge::Result<Trainer>> trainer;
  std::optional<weightbridge::Result<Rollout>> rollout;
  std::uint64_t version = 0;

  Cluster() {
    REQUIRE(n0.Start());
    REQUIRE(n0.Ready());
    n1.emplace(DaemonProcess::Options{folder.path(), "n1", AddressOf(n0), ""});
    REQUIRE(n1->Start());
    REQUIRE(n1->Ready());
    source.emplace(n0.worker_socket(), "policy", 16 * 1024, 1024);  // 64 MiB
    target.emplace(n1->worker_socket(), "engine0", 16 * 1024, 1024);
    trainer.emplace(Trainer::Join(source->options, source->layout));
    rollout.emplace(Rollout::Join(target->options, target->layout));
    REQUIRE(TextOf(*trainer) == "OK");
    REQUIRE(TextOf(*rollout) == "OK");
  }

  /// Stops n1 once it may write; what Receive says then.
  weightbridge::Error StopAmidReceive() {
    for (int tries = 0; tries < 20; ++tries) {
      ++version;
      auto published = std::async(std::launch::async, [&] {
        return (*trainer)->Publish(version, {"", 2s}).ok();
      });
      REQUIRE(TextOf((*rollout)->WaitForVersion(version, Slack(10s))) == "OK");
      const auto start = Clock::now();
      auto received =
          std::async(std::launch::async, [&] { return (*rollout)->Receive(version, {1s}); });
      while ((*rollout)->held_version() == version - 1 &&
             (*rollout)->memory_state() != MemoryState::kInvalid && Clock::now() < start + 1s) {
        std::this_thread::yield();
      }
      n1->Signal(SIGSTOP);
      const auto report = received.get();
      const auto took = Clock::now() - start;
      if (!report.ok()) {
        REQUIRE(took < 2s + Slack(500ms));
        REQUIRE_FALSE(published.get());
        return report.error();
      }
      n1->Signal(SIGCONT);  // it was quicker
      REQUIRE(published.get());
    }
    FAIL("every delivery ended before its daemon was stopped");
    return {};
  }

  /// Whether a call of the rollout finds its memory free within `bound`: the daemon has it again.
  bool QuarantineEnds(std::chrono::milliseconds bound = 10s) {
    const auto until = Clock::now() + Slack(bound);
    while (Clock::now() < until) {
      const auto waited = (*rollout)->WaitForVersion(version + 1, 200ms);
      if (waited.ok() || !absl::StrContains(waited.error().message, "may still change")) {
        return !(*rollout)->session_id().empty();
      }
    }
    return false;
  }
};

TEST_CASE("Memory that a stopped daemon may write is used again when that goes on", "[system]") {
  Cluster cluster;
  const weightbridge::Error stopped = cluster.StopAmidReceive();
  CAPTURE(stopped.ToString());
  REQUIRE(stopped.code == WB_DEADLINE_EXCEEDED);
  REQUIRE(absl::StrContains(stopped.message, "invalid and may still change"));
  REQUIRE(stopped.details.size() == 1);
  REQUIRE(absl::StrContains(stopped.details[0], "reason=LATE domain=weightbridge node=n1"));
  Rollout& rollout = **cluster.rollout;
  const auto quarantined = rollout.WaitForVersion(cluster.version + 1, 100ms);
  CAPTURE(TextOf(quarantined));
  REQUIRE(absl::StrContains(
      TextOf(quarantined),
      absl::StrCat("memory of engine0/0 may still change: the daemon (pid ", cluster.n1->pid(),
                   "), which did not answer Receive of version ", cluster.version, ", lives")));
  REQUIRE(rollout.memory_state() == MemoryState::kInvalid);
  cluster.n1->Signal(SIGCONT);
  REQUIRE(cluster.QuarantineEnds());
  // From here on nothing of the old session touches it.
  cluster.target->Fill(-1);
  REQUIRE_FALSE(rollout.WaitForVersion(cluster.version + 1, 100ms).ok());
  REQUIRE(cluster.target->Holds(-1));
  Update(**cluster.trainer, *cluster.source, rollout, *cluster.target, cluster.version + 1);
}

TEST_CASE("Memory that a stopped daemon may write is kept until that is killed", "[system]") {
  Cluster cluster;
  const int before = MappedBuffers();
  cluster.StopAmidReceive();
  SECTION("the same rollout joins at its successor") {
    cluster.n1->Signal(SIGKILL);
    REQUIRE(cluster.n1->Ends() == "was killed by signal 9 (Killed)");
    REQUIRE(cluster.n1->Start());
    REQUIRE(cluster.n1->Ready());
    REQUIRE(cluster.QuarantineEnds());
    Update(**cluster.trainer, *cluster.source, **cluster.rollout, *cluster.target,
           cluster.version + 1);
  }
  SECTION("also when session and buffer are gone") {
    cluster.rollout.reset();
    cluster.target.reset();
    REQUIRE(MappedBuffers() == before);
    cluster.n1->Signal(SIGKILL);
    REQUIRE(cluster.n1->Ends() == "was killed by signal 9 (Killed)");
    // It is let go when the library is used again.
    TensorWorker other(cluster.n0.worker_socket(), "engine1", 16 * 1024, 1024);
    const auto joined = Rollout::Join(other.options, other.layout);
    REQUIRE(TextOf(joined) == "OK");
    REQUIRE(MappedBuffers() == before);  // with `other`'s
  }
}

TEST_CASE("Memory that a stopped daemon may read is published again when that goes on",
          "[system]") {
  Cluster cluster;
  Trainer& trainer = **cluster.trainer;
  cluster.n0.Signal(SIGSTOP);
  const auto start = Clock::now();
  const std::string first = TextOf(trainer.Publish(1, {"", 500ms}));
  REQUIRE(Clock::now() - start < 1500ms + Slack(500ms));
  REQUIRE(absl::StrContains(first, "memory of policy/0 may still be read: the daemon (pid"));
  const std::string second = TextOf(trainer.Publish(2, {"", 100ms}));
  CAPTURE(second);
  REQUIRE(absl::StrContains(second, "which did not answer Publish of version 1, lives"));
  cluster.n0.Signal(SIGCONT);
  Update(trainer, *cluster.source, **cluster.rollout, *cluster.target, 3);
}

}  // namespace
}  // namespace wb
