// A log that cannot be written, or that somebody's mistake would fill: the daemon moves on.

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "planner/base/fd_handle.h"
#include "tests/daemon/rpc/door_client.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::DaemonProcess;
using test::Exited;
using test::kListen;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using namespace std::chrono_literals;

/// What the daemon's files may have. ThreadSanitizer makes one of half a MiB as a process starts.
constexpr std::uintmax_t kFileBytes = 2 << 20;

/// A command that becomes the daemon with its stdout and stderr as a shell says, and with files of
/// kFileBytes at most.
std::vector<std::string> Redirected(const std::string& how) {
  const std::string blocks = std::to_string(kFileBytes / 512);
  return {"/bin/sh", "-c", "ulimit -f " + blocks + "; exec \"$@\" " + how, "sh"};
}

/// A pipe by name, with a reader that does not read.
struct UnreadPipe {
  std::string path;
  FdHandle reader;

  explicit UnreadPipe(const std::string& at) : path(at) {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    reader = FdHandle(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  void Fill() const {
    const FdHandle writer(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(writer);
    const std::array<char, 4096> block{};
    while (::write(writer.get(), block.data(), block.size()) > 0) {
    }
  }
};

void UpdatesAndEnds(DaemonProcess& daemon) {
  test::MoveVersions(daemon.worker_socket(), daemon.worker_socket(), 1, 3);
  daemon.Signal(SIGTERM);
  REQUIRE(daemon.Ends(5s) == Exited(0));
}

TEST_CASE("A log that cannot be written does not stop or block a daemon",
          "[system][daemon][log][field][case-160]") {
  const TempFolder folder;
  UnreadPipe stalls(folder.path() + "/stalls");
  UnreadPipe leaves(folder.path() + "/leaves");
  stalls.Fill();
  const std::string limited = folder.path() + "/limited";
  std::ofstream(limited).put('.');
  std::filesystem::resize_file(limited, kFileBytes);
  const std::vector<std::string> logs = {
      "2>/dev/full",       // a full disk
      "<&- >&- 2>&-",      // closed: no socket may get their numbers
      "2>" + stalls.path,  // a reader that does not read
      "2>>" + limited,     // at the size that ulimit -f allows
      "2>" + leaves.path,  // one that goes away meanwhile
  };
  for (const std::string& log : logs) {
    CAPTURE(log);
    DaemonProcess::Options options{folder.path(), "n0", kListen, "log: {level: trace}"};
    options.prefix = Redirected(log);
    DaemonProcess daemon(options);
    REQUIRE(daemon.Start());
    REQUIRE(daemon.Ready());
    if (log == logs.back()) leaves.reader.Reset();
    UpdatesAndEnds(daemon);
  }
  REQUIRE(std::filesystem::file_size(limited) == kFileBytes);
}

TEST_CASE("A client that is refused all the time is a few lines and a count",
          "[system][daemon][log][field][case-160]") {
  const TempFolder folder;
  DaemonProcess daemon({folder.path(), "n0", kListen, ""});
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  const TensorWorker worker(daemon.worker_socket(), "engine0");
  {
    const auto holder = weightbridge::Rollout::Join(worker.options, worker.layout);
    REQUIRE(TextOf(holder) == "OK");
    const TensorWorker other(daemon.worker_socket(), "engine0");  // in memory of its own
    for (int i = 0; i < 200; ++i) {
      const auto taken = weightbridge::Rollout::Join(other.options, other.layout);
      REQUIRE(absl::StrContains(TextOf(taken), "ALREADY_EXISTS"));
      const test::DoorClient gone(daemon.worker_socket());
    }
  }
  daemon.Signal(SIGTERM);
  REQUIRE(daemon.Ends(5s) == Exited(0));
  const std::string log = daemon.Log();
  CAPTURE(log);
  const std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
  REQUIRE(lines.size() <= 40);
  REQUIRE(absl::StrContains(log, "(repeated 19"));
}

}  // namespace
}  // namespace wb
