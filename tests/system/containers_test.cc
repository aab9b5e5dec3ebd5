// Workers where containers put them: in namespaces of their own, with nothing of the daemon's in
// them but its run directory. And many of them at once.

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"
#include "tests/support/namespaces.h"
#include "tests/support/run_to_end.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AddressOf;
using test::AskDaemon;
using test::BinaryOf;
using test::DaemonProcess;
using test::kListen;
using test::Slack;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using namespace std::chrono_literals;

/// A leader with a trainer and a daemon with a rollout, whose program `command` starts. How the
/// rollout's program ended.
test::ProgramEnd RolloutUnder(const TempFolder& folder, const std::vector<std::string>& command) {
  DaemonProcess n0({folder.path(), "n0", kListen, ""});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(n0), ""});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  const std::string program = BinaryOf("system_worker_program");
  auto trainer = std::async(std::launch::async, [&] {
    return test::RunToEnd({program, "trainer", n0.worker_socket(), "3"}, {}, Slack(20s));
  });
  std::vector<std::string> argv = command;
  argv.insert(argv.end(), {program, "rollout", n1.worker_socket(), "3"});
  test::ProgramEnd rollout = test::RunToEnd(argv, {}, Slack(20s));
  const test::ProgramEnd trained = trainer.get();
  CAPTURE(trained.err, rollout.err, n1.Log());
  REQUIRE(trained.exit_code == 0);
  REQUIRE(rollout.exit_code == 0);
  const nlohmann::json versions = AskDaemon(folder, "versions", n0).at("versions");
  REQUIRE(versions.at(0).at("version") == 3);
  REQUIRE(versions.at(0).at("deliveries").at(0).at("bytes_by_path").at("tcp") == 256 * 1024);
  return rollout;
}

TEST_CASE("A rollout in a PID namespace of its own is served by its descriptors",
          "[system][containers][field][case-147]") {
  if (!test::MayMakeNamespaces(CLONE_NEWPID)) return;
  const TempFolder folder;
  REQUIRE(RolloutUnder(folder, {"/usr/bin/unshare", "--pid", "--fork"}).exit_code == 0);
}

TEST_CASE("A rollout that shares the run directory only is served, without /proc or /dev/shm",
          "[system][containers][field][case-148]") {
  if (!test::MayMakeNamespaces(CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS)) return;
  const TempFolder folder;
  const test::ProgramEnd end = RolloutUnder(
      folder, {"/usr/bin/unshare", "--ipc", "--mount", "--pid", "--fork", "/bin/sh", "-c",
               "mount -t tmpfs none /proc && mount -t tmpfs none /dev/shm && exec \"$@\"", "sh"});
  REQUIRE(end.exit_code == 0);
}

/// One of `ranks` trainers, which hold a layer of 64 elements each.
struct Stage {
  weightbridge::SharedBuffer memory = *weightbridge::SharedBuffer::Create(64 * 4);
  weightbridge::Layout layout;

  Stage(int rank, int ranks) {
    for (int i = 0; i < ranks; ++i) {
      REQUIRE(layout.AddTensor(absl::StrCat("layer", i), weightbridge::Dtype::kFp32, {64}).ok());
    }
    weightbridge::Param param("w", {64});
    param.AddPiece({absl::StrCat("layer", rank), {0}, {64}, {0}, {}});
    REQUIRE(layout.AddParam(param).ok());
    REQUIRE(layout.SetBuffer("w", memory).ok());
  }
  float* values() const { return static_cast<float*>(memory.data()); }
};

weightbridge::JoinOptions Joining(const DaemonProcess& daemon,
                                  const std::string& job,
                                  const std::string& group,
                                  int rank,
                                  int world_size) {
  weightbridge::JoinOptions options;
  options.socket = daemon.worker_socket();
  options.job = job;
  options.group = group;
  options.rank = rank;
  options.world_size = world_size;
  options.timeout = Slack(10s);
  return options;
}

TEST_CASE("Stages of a pipeline that register and publish at the same moment make one version",
          "[system][containers][field][case-98]") {
  const int stages = GENERATE(2, 4);
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, ""});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  for (int round = 0; round < 50; ++round) {
    CAPTURE(stages, round);
    const std::string job = absl::StrCat("job", round);
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<Stage>> held;
    std::vector<std::future<std::string>> published;
    for (int rank = 0; rank < stages; ++rank) {
      held.push_back(std::make_unique<Stage>(rank, stages));
      for (int i = 0; i < 64; ++i) held.back()->values()[i] = static_cast<float>(rank * 64 + i);
    }
    for (int rank = 0; rank < stages; ++rank) {
      published.push_back(std::async(std::launch::async, [&, rank] {
        auto trainer = weightbridge::Trainer::Join(Joining(n0, job, "policy", rank, stages),
                                                   held[static_cast<std::size_t>(rank)]->layout);
        if (!trainer.ok()) return TextOf(trainer);
        return TextOf(trainer->Publish(1, {"", Slack(10s)}));
      }));
    }
    weightbridge::SharedBuffer memory =
        *weightbridge::SharedBuffer::Create(static_cast<std::uint64_t>(stages) * 64 * 4);
    weightbridge::Layout layout;
    weightbridge::Param param("all", {stages * 64});
    for (int i = 0; i < stages; ++i) {
      REQUIRE(layout.AddTensor(absl::StrCat("layer", i), weightbridge::Dtype::kFp32, {64}).ok());
      param.AddPiece({absl::StrCat("layer", i), {0}, {64}, {i * 64}, {}});
    }
    REQUIRE(layout.AddParam(param).ok());
    REQUIRE(layout.SetBuffer("all", memory).ok());
    auto rollout = weightbridge::Rollout::Join(Joining(n0, job, "engine0", 0, 1), layout);
    REQUIRE(TextOf(rollout) == "OK");
    REQUIRE(TextOf(rollout->WaitForVersion(1, Slack(10s))) == "OK");
    REQUIRE(TextOf(rollout->Receive(1, {Slack(10s)})) == "OK");
    for (auto& one : published) REQUIRE(one.get() == "OK");
    const auto* const values = static_cast<const float*>(memory.data());
    for (int i = 0; i < stages * 64; ++i) REQUIRE(values[i] == static_cast<float>(i));
    REQUIRE(std::chrono::steady_clock::now() - start < Slack(5s));
  }
}

TEST_CASE("A publication that waits for a group names the ranks that are missing",
          "[system][containers][field][case-116]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, "timeouts: {start: 1s}"});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  const Stage source(0, 1);
  auto trainer = weightbridge::Trainer::Join(Joining(n0, "job", "policy", 0, 1), source.layout);
  REQUIRE(TextOf(trainer) == "OK");
  const Stage first(0, 1);
  const Stage second(0, 1);
  // Four ranks are declared, two come.
  auto r0 = weightbridge::Rollout::Join(Joining(n0, "job", "engine0", 0, 4), first.layout);
  auto r1 = weightbridge::Rollout::Join(Joining(n0, "job", "engine0", 1, 4), second.layout);
  REQUIRE(TextOf(r0) == "OK");
  REQUIRE(TextOf(r1) == "OK");
  const auto start = std::chrono::steady_clock::now();
  const std::string outcome = TextOf(trainer->Publish(1, {"", 1s}));
  CAPTURE(outcome);
  REQUIRE(std::chrono::steady_clock::now() - start < Slack(4s));
  REQUIRE(absl::StrContains(outcome, "engine0: 2 of 4 registered: missing ranks 2,3"));
}

}  // namespace
}  // namespace wb
