// What stays on a host after everything of ours was killed in the middle of its work.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "client/wbctl/process/child.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"

namespace wb {
namespace {

using test::AddressOf;
using test::BinaryOf;
using test::DaemonProcess;
using test::kListen;
using test::Slack;
using test::TempFolder;
using namespace std::chrono_literals;

std::set<std::string> SharedMemory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("ucx_shm")) names.insert(name);
  }
  return names;
}

/// A segment as another job's UCX would name it.
class OthersSegment {
 public:
  OthersSegment() : path_(absl::StrCat("/dev/shm/ucx_shm_posix_of_another_", ::getpid())) {
    REQUIRE(test::WriteWholeFile(path_, "alive"));
  }
  ~OthersSegment() { std::filesystem::remove(path_); }
  OthersSegment(const OthersSegment&) = delete;
  OthersSegment& operator=(const OthersSegment&) = delete;
  bool intact() const { return test::ReadWholeFile(path_) == "alive"; }

 private:
  std::string path_;
};

Child StartWorker(const TempFolder& folder, const std::string& role, const DaemonProcess& daemon) {
  absl::StatusOr<Child> worker = Child::Start(
      {.name = role,
       .argv = {BinaryOf("system_worker_program"), role, daemon.worker_socket(), "1000000"},
       .environment = {},
       .log = folder.path() + "/" + role + ".log"});
  REQUIRE(worker.ok());
  return *std::move(worker);
}

TEST_CASE("Daemons and workers killed in an update leave no shared memory behind",
          "[system][field][case-150]") {
  const TempFolder folder;
  const OthersSegment others;
  const std::set<std::string> before = SharedMemory();
  DaemonProcess n0(
      {.folder = folder.path(), .node = "n0", .leader = kListen, .more = "", .transports = "shm"});
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    REQUIRE(n0.Start());
    REQUIRE(n0.Ready());
    DaemonProcess n1({.folder = folder.path(),
                      .node = "n1",
                      .leader = AddressOf(n0),
                      .more = "",
                      .transports = "shm"});
    REQUIRE(n1.Start());
    REQUIRE(n1.Ready());
    const Child trainer = StartWorker(folder, "trainer", n0);
    const Child rollout = StartWorker(folder, "rollout", n1);
    // From the third version on one follows the other at once: whenever it comes, it is amid one.
    CAPTURE(n1.Log());
    REQUIRE(LogShows(n1, "version=3 group=engine0 prepared->asking"));
    n1.Signal(SIGKILL);
    trainer.Signal(SIGKILL);
    n0.Signal(SIGKILL);
    rollout.Signal(SIGKILL);
    REQUIRE(n0.Ends() == "was killed by signal 9 (Killed)");
    REQUIRE(n1.Ends() == "was killed by signal 9 (Killed)");
  }
  // Other tests' segments come and go meanwhile.
  const auto deadline = std::chrono::steady_clock::now() + Slack(10s);
  const auto left = [&] { return !std::ranges::includes(before, SharedMemory()); };
  while (left() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  REQUIRE_FALSE(left());
  REQUIRE(others.intact());
}

}  // namespace
}  // namespace wb
