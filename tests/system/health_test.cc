// What a daemon says of itself when one of its threads stops, or all of it.

#include "tests/system/health.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <string>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AddressOf;
using test::AskDaemon;
using test::DaemonProcess;
using test::HealthBecomes;
using test::kListen;
using test::LogShows;
using test::Slack;
using test::StatusBecomes;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using namespace std::chrono_literals;

/// One thread of a daemon, by its name, that does not run while this lives; signals stop whole
/// processes, a debugger stops threads.
class StoppedThread {
 public:
  StoppedThread(pid_t process, const std::string& name) {
    for (const auto& entry :
         std::filesystem::directory_iterator(absl::StrCat("/proc/", process, "/task"))) {
      if (test::ReadWholeFile(entry.path() / "comm") != name + "\n") continue;
      const pid_t thread = std::stoi(entry.path().filename());
      if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return;
      REQUIRE(::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0);
      int status = 0;
      REQUIRE(::waitpid(thread, &status, __WALL) == thread);
      REQUIRE(WIFSTOPPED(status));
      thread_ = thread;
      return;
    }
    FAIL("no thread " << name);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;
  ~StoppedThread() {
    if (stopped()) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  /// False where this process may not trace.
  bool stopped() const { return thread_ != 0; }

 private:
  pid_t thread_ = 0;
};

TEST_CASE("A thread that stops makes its daemon unhealthy in time, and is named with since when",
          "[system][health][field][case-108]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, "timeouts: {peer: 1s}"});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(HealthBecomes(daemon.control(), "SERVING"));
  REQUIRE(StatusBecomes(folder, daemon, "state", "idle", 5s));
  for (const std::string thread : {"mover", "control", "leader"}) {
    CAPTURE(thread);
    {
      const StoppedThread stopped(daemon.pid(), "wb-" + thread);
      if (!stopped.stopped()) {
        WARN("skipped: threads cannot be traced here");
        return;
      }
      const auto start = std::chrono::steady_clock::now();
      REQUIRE(HealthBecomes(daemon.control(), "NOT_SERVING"));
      REQUIRE(std::chrono::steady_clock::now() - start < Slack(1s));
      const auto asked = std::chrono::steady_clock::now();
      const nlohmann::json status = AskDaemon(folder, "status", daemon);
      REQUIRE(std::chrono::steady_clock::now() - asked < Slack(500ms));  // wbctl starts and ends
      REQUIRE(status.at("state") == "stuck");
      REQUIRE(absl::StrContains(status.at("waits").dump(),
                                "the " + thread + " thread has not turned for "));
    }
    REQUIRE(HealthBecomes(daemon.control(), "SERVING"));
    REQUIRE(LogShows(daemon, "E the " + thread + " thread has not turned for "));
  }
  REQUIRE(LogShows(daemon, "all threads turn again"));
}

TEST_CASE("A daemon that stops as a whole is lost to the leader within timeouts.peer",
          "[system][health][field][case-108]") {
  const TempFolder folder;
  DaemonProcess leader({folder.path(), "n0", kListen, "timeouts: {peer: 1s}"});
  REQUIRE(leader.Start());
  REQUIRE(leader.Ready());
  DaemonProcess daemon({folder.path(), "n1", AddressOf(leader), "timeouts: {peer: 1s}"});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(StatusBecomes(folder, daemon, "leader_connected", true, 5s));
  daemon.Signal(SIGSTOP);
  REQUIRE(LogShows(leader, "node=n1 lost", 1s));
  daemon.Signal(SIGCONT);
  REQUIRE(StatusBecomes(folder, daemon, "state", "idle", 10s));
}

}  // namespace
}  // namespace wb
