// weightbridged as processes: how it starts, refuses to, ends, and comes back.

#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/daemon/rpc/door_client.h"
#include "tests/support/catch.h"
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
using test::Exited;
using test::kListen;
using test::Slack;
using test::StatusBecomes;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using test::Update;
using namespace std::chrono_literals;

std::size_t DescriptorsOf(pid_t pid) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"))) {
    ++count;
  }
  return count;
}

/// What a process has used of the CPUs since its start, all its threads together.
std::chrono::nanoseconds CpuTime(pid_t pid) {
  clockid_t clock{};
  REQUIRE(::clock_getcpuclockid(pid, &clock) == 0);
  timespec used{};
  REQUIRE(::clock_gettime(clock, &used) == 0);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TEST_CASE("A daemon starts, says where it is, and drains at SIGTERM",
          "[system][daemon][field][case-149]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, "control: {listen: '127.0.0.1:0'}"});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(absl::StartsWith(daemon.Said("X_WB_LEADER"), "127.0.0.1:"));
  REQUIRE(daemon.Said("X_WB_LEADER") != "127.0.0.1:0");
  REQUIRE(absl::StartsWith(daemon.Said("X_WB_CONTROL"), "127.0.0.1:"));
  REQUIRE(daemon.Said("MAINPID") == absl::StrCat(daemon.pid()));
  const nlohmann::json status = AskDaemon(folder, "status", daemon);
  REQUIRE(status.at("node") == "n0");
  REQUIRE(status.at("is_leader") == true);
  REQUIRE(status.at("leader_address") == daemon.Said("X_WB_LEADER"));
  daemon.Signal(SIGTERM);
  REQUIRE(daemon.Ends(5s) == Exited(0));
  REQUIRE_FALSE(std::filesystem::exists(daemon.run_dir() + "/worker.sock"));
  REQUIRE_FALSE(std::filesystem::exists(daemon.run_dir() + "/control.sock"));
}

TEST_CASE("A daemon drops UCX variables of the shell it is started from, and names them",
          "[system][daemon]") {
  const TempFolder folder;
  DaemonProcess daemon({.folder = folder.path(),
                        .node = "n0",
                        .leader = kListen,
                        .more = "",
                        .environment = {"UCX_RNDV_THRESH=1k", "UCX_TLS=self"}});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(absl::StrContains(daemon.Log(), "UCX_RNDV_THRESH"));
  REQUIRE(absl::StrContains(daemon.Log(), "UCX_TLS"));
}

TEST_CASE("Before the first publish a leader shows no versions",
          "[system][daemon][field][case-92]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(AskDaemon(folder, "versions", daemon).at("versions").empty());
  REQUIRE(AskDaemon(folder, "workers", daemon).at("workers").empty());
}

TEST_CASE("A daemon killed by SIGKILL comes back in its directory within a second",
          "[system][daemon][field][case-149]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  daemon.Signal(SIGKILL);
  REQUIRE(absl::StrContains(daemon.Ends(), "signal 9"));
  REQUIRE(std::filesystem::exists(daemon.run_dir() + "/worker.sock"));
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready(1s));
  REQUIRE(test::DoorClient(daemon.worker_socket()).connected());
}

TEST_CASE("A second daemon in the same directory is refused, the first serves on",
          "[system][daemon][field][case-149]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  const test::Finished second =
      test::RunProgram(folder.path(), {BinaryOf("weightbridged"), "--config", daemon.config()});
  REQUIRE(second.code == 1);
  REQUIRE(absl::StrContains(second.output, absl::StrCat("of pid ", daemon.pid())));
  REQUIRE(AskDaemon(folder, "status", daemon).at("node") == "n0");
  REQUIRE(test::DoorClient(daemon.worker_socket()).connected());
}

TEST_CASE("Of two daemons that start at once exactly one runs",
          "[system][daemon][field][case-149]") {
  const TempFolder folder;
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    const std::string run_dir = folder.path() + "/run";
    DaemonProcess a({folder.path(), "a", kListen, "", run_dir});
    DaemonProcess b({folder.path(), "b", kListen, "", run_dir});
    REQUIRE(a.Start());
    REQUIRE(b.Start());
    std::string a_end = "runs";
    std::string b_end = "runs";
    for (int tries = 0; a_end == "runs" && b_end == "runs" && tries < 100; ++tries) {
      a_end = a.Ends(50ms);
      b_end = b.Ends(50ms);
    }
    REQUIRE((a_end == "runs") != (b_end == "runs"));
    REQUIRE((a_end == "runs" ? b_end : a_end) == Exited(1));
    REQUIRE((a_end == "runs" ? a : b).Ready());
  }
}

TEST_CASE("A regular file where a socket should be stops the start and stays",
          "[system][daemon][field][case-149]") {
  const std::string name = GENERATE("worker.sock", "control.sock");
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  std::filesystem::create_directory(daemon.run_dir());
  std::ofstream(daemon.run_dir() + "/" + name) << "precious";
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ends() == Exited(1));
  REQUIRE(absl::StrContains(daemon.Log(), name + " is there and is no socket"));
  REQUIRE(std::filesystem::file_size(daemon.run_dir() + "/" + name) == 8);
}

TEST_CASE("Bad configurations and calls end with their exit codes", "[system][daemon]") {
  const TempFolder folder;
  const std::string program = BinaryOf("weightbridged");
  const std::string file = folder.path() + "/c.yaml";
  std::ofstream(file) << "node: n0\nnodes: 3\n";
  const test::Finished refused = test::RunProgram(folder.path(), {program, "--config", file});
  REQUIRE(refused.code == 2);
  REQUIRE(refused.output == file + ":2: nodes: is no key of this file\n");
  REQUIRE(test::RunProgram(folder.path(), {program}).code == 3);
  REQUIRE(test::RunProgram(folder.path(), {program, "--config", file, "--what"}).code == 3);
  REQUIRE(test::RunProgram(folder.path(), {program, "--version"}).output ==
          absl::StrCat("weightbridged ", WB_VERSION, "\n"));
  std::ofstream(file) << "node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: lo}\n";
  const std::vector<std::string> check = {program, "--config", file, "--check-config"};
  REQUIRE(test::RunProgram(folder.path(), check).code == 0);
  std::ofstream(file) << "node: n0\nleader: {listen: '127.0.0.1:0'}\ndata: {interface: none0}\n";
  const test::Finished none = test::RunProgram(folder.path(), check);
  REQUIRE(none.code == 2);
  REQUIRE(absl::StrContains(none.output, "there is no interface 'none0'"));
}

TEST_CASE("Three versions reach a rollout through two daemons, whole", "[system][daemon]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, ""});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(n0), ""});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  TensorWorker source(n0.worker_socket(), "policy");
  TensorWorker target(n1.worker_socket(), "engine0");
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  for (std::uint64_t version = 1; version <= 3; ++version) {
    Update(*trainer, source, *rollout, target, version);
  }
  const nlohmann::json workers = AskDaemon(folder, "workers", n0).at("workers");
  REQUIRE(workers.size() == 2);
  REQUIRE(workers[0].at("node") != workers[1].at("node"));
  const nlohmann::json versions = AskDaemon(folder, "versions", n0).at("versions");
  REQUIRE(versions.size() == 3);
  REQUIRE(versions[0].at("version") == 3);
  REQUIRE(versions[0].at("deliveries")[0].at("state") == "committed");
  REQUIRE(versions[0].at("deliveries")[0].at("bytes_by_path").at("tcp") == 64 * 16 * 4);
  // A daemon that is not the leader says where it is.
  const test::Finished asked =
      test::RunProgram(folder.path(), {BinaryOf("wbctl"), "versions", "--daemon", n1.control()});
  REQUIRE(asked.code == 1);
  REQUIRE(absl::StrContains(asked.output, n0.Said("X_WB_LEADER")));
}

TEST_CASE("Daemons with sessions and lanes open use no CPU while there is nothing to do",
          "[system][daemon]") {
  const std::string transport = GENERATE("tcp", "shm");
  const TempFolder folder;
  DaemonProcess n0({.folder = folder.path(),
                    .node = "n0",
                    .leader = kListen,
                    .more = "",
                    .transports = transport});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  DaemonProcess n1({.folder = folder.path(),
                    .node = "n1",
                    .leader = AddressOf(n0),
                    .more = "",
                    .transports = transport});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  // A MiB a version, so that chunks are announced and pulled as in earnest.
  TensorWorker source(n0.worker_socket(), "policy", 1024, 256);
  TensorWorker target(n1.worker_socket(), "engine0", 1024, 256);
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  Update(*trainer, source, *rollout, target, 1);

  const std::chrono::nanoseconds before[] = {CpuTime(n0.pid()), CpuTime(n1.pid())};
  // A quiet half second, in which a worker waits for a version as an engine does.
  REQUIRE_FALSE(rollout->WaitForVersion(2, 500ms).ok());
  const std::chrono::nanoseconds used[] = {CpuTime(n0.pid()) - before[0],
                                           CpuTime(n1.pid()) - before[1]};
  CAPTURE(transport, used[0].count(), used[1].count());
  REQUIRE(used[0] < Slack(10ms));
  REQUIRE(used[1] < Slack(10ms));

  Update(*trainer, source, *rollout, target, 2);  // and they are awake at once
  const nlohmann::json versions = AskDaemon(folder, "versions", n0).at("versions");
  REQUIRE(versions[0].at("deliveries")[0].at("bytes_by_path").at(transport) == 1024 * 256 * 4);
}

TEST_CASE("A worker that truncates its memory after Join cannot, and versions go on",
          "[system][daemon]") {
  const TempFolder folder;
  DaemonProcess n0({folder.path(), "n0", kListen, ""});
  REQUIRE(n0.Start());
  REQUIRE(n0.Ready());
  TensorWorker source(n0.worker_socket(), "policy");
  TensorWorker target(n0.worker_socket(), "engine0");
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  for (std::uint64_t version = 1; version <= 2; ++version) {
    for (const TensorWorker* worker : {&source, &target}) {
      REQUIRE(::ftruncate(worker->memory.fd(), 0) == -1);
      REQUIRE(errno == EPERM);
    }
    Update(*trainer, source, *rollout, target, version);
  }
}

TEST_CASE("After the leader's death daemons and workers find its successor", "[system][daemon]") {
  const TempFolder folder;
  DaemonProcess first({folder.path(), "lead", kListen, ""});
  REQUIRE(first.Start());
  REQUIRE(first.Ready());
  const std::string address = first.Said("X_WB_LEADER");
  DaemonProcess n1({folder.path(), "n1", "address: '" + address + "'", ""});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  TensorWorker source(n1.worker_socket(), "policy");
  TensorWorker target(n1.worker_socket(), "engine0");
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  Update(*trainer, source, *rollout, target, 7);
  const auto old_term = AskDaemon(folder, "status", n1).at("term").get<std::uint64_t>();
  first.Signal(SIGKILL);
  REQUIRE(absl::StrContains(first.Ends(), "signal 9"));
  REQUIRE(StatusBecomes(folder, n1, "leader_connected", false, 3s));
  DaemonProcess second({folder.path(), "lead", "listen: '" + address + "'", ""});
  REQUIRE(second.Start());
  REQUIRE(second.Ready());
  REQUIRE(StatusBecomes(folder, n1, "leader_connected", true, 5s));
  REQUIRE(AskDaemon(folder, "status", n1).at("term").get<std::uint64_t>() > old_term);
  Update(*trainer, source, *rollout, target, 8);
}

TEST_CASE("A leader that stands still counts as dead within timeouts.peer", "[system][daemon]") {
  const TempFolder folder;
  DaemonProcess lead({folder.path(), "lead", kListen, "timeouts: {peer: 2s}"});
  REQUIRE(lead.Start());
  REQUIRE(lead.Ready());
  DaemonProcess n1({folder.path(), "n1", AddressOf(lead), "timeouts: {peer: 2s}"});
  REQUIRE(n1.Start());
  REQUIRE(n1.Ready());
  REQUIRE(StatusBecomes(folder, n1, "leader_connected", true, 5s));
  lead.Signal(SIGSTOP);
  REQUIRE(StatusBecomes(folder, n1, "leader_connected", false, 3s));
  lead.Signal(SIGCONT);
  REQUIRE(StatusBecomes(folder, n1, "leader_connected", true, 8s));
}

TEST_CASE("SIGTERM during a call ends the call and the daemon in time", "[system][daemon]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, "timeouts: {drain: 1s}"});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  TensorWorker source(daemon.worker_socket(), "policy");
  TensorWorker target(daemon.worker_socket(), "engine0");
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  // The rollout never receives: the publication waits.
  auto published = std::async(std::launch::async, [&trainer] {
    return TextOf(trainer->Publish(1, {"", Slack(60s)}));
  });
  REQUIRE(rollout->WaitForVersion(1, Slack(5s)).ok());
  const auto start = std::chrono::steady_clock::now();
  daemon.Signal(SIGTERM);
  REQUIRE(daemon.Ends(5s) == Exited(0));
  const std::string outcome = published.get();
  REQUIRE(outcome != "OK");
  REQUIRE(std::chrono::steady_clock::now() - start < Slack(5s));
  REQUIRE(absl::StrContains(daemon.Log(), "stopped"));
}

TEST_CASE("Garbage at the door leaves no descriptor and no session in the daemon",
          "[system][daemon]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  {
    test::DoorClient warm_up(daemon.worker_socket());
    warm_up.SendBytes("x");
    REQUIRE(warm_up.Ends());
  }
  AskDaemon(folder, "status", daemon);
  const std::size_t before = DescriptorsOf(daemon.pid());
  for (int round = 0; round < 200; ++round) {
    test::DoorClient client(daemon.worker_socket());
    test::JoiningWorker worker = test::JoiningWorker::Make(v1::ROLLOUT, "engine0");
    worker.buffers[1].memory = test::MakeMemory(8, round % 2 == 0);
    worker.buffers[1].attach.set_bytes(1);
    worker.Send(client);
    REQUIRE(client.Ends());
  }
  REQUIRE(StatusBecomes(folder, daemon, "sessions", 0, 5s));
  REQUIRE(AskDaemon(folder, "status", daemon).at("region_bytes") == 0);
  // The ops door closes a client's socket a moment after its last word.
  const auto deadline = std::chrono::steady_clock::now() + Slack(5s);
  while (DescriptorsOf(daemon.pid()) > before && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  REQUIRE(DescriptorsOf(daemon.pid()) <= before);
}

}  // namespace
}  // namespace wb
