#include "daemon/rpc/run_dir.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"

#include "daemon/rpc/local/packet_socket.h"
#include "tests/daemon/rpc/door_client.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

namespace wb {
namespace {

using test::TempFolder;

mode_t ModeOf(const std::string& path) {
  struct stat found {};
  REQUIRE(::lstat(path.c_str(), &found) == 0);
  return found.st_mode & 07777;
}

TEST_CASE("A run directory is made with mode 0750 and its sockets with 0660", "[rpc][run_dir]") {
  const TempFolder temp;
  absl::StatusOr<RunDir> dir = RunDir::Open(temp.path() + "/run");
  REQUIRE(dir.ok());
  REQUIRE(ModeOf(temp.path() + "/run") == 0750);
  const absl::StatusOr<std::string> path = dir->ClaimSocket("worker.sock");
  REQUIRE(path.ok());
  const absl::StatusOr<FdHandle> listener = ListenPackets(*path);
  REQUIRE(listener.ok());
  REQUIRE(ModeOf(*path) == 0660);
}

TEST_CASE("A second daemon is refused by name and the first keeps its socket",
          "[rpc][run_dir][field][case-149]") {
  const TempFolder temp;
  absl::StatusOr<RunDir> first = RunDir::Open(temp.path() + "/run");
  REQUIRE(first.ok());
  const std::string path = *first->ClaimSocket("worker.sock");
  const absl::StatusOr<FdHandle> listener = ListenPackets(path);
  const absl::StatusOr<RunDir> second = RunDir::Open(temp.path() + "/run");
  REQUIRE(second.status().code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(absl::StrContains(second.status().message(), absl::StrCat("of pid ", ::getpid())));
  REQUIRE(absl::StrContains(second.status().message(), temp.path() + "/run"));
  REQUIRE(test::DoorClient(path).connected());
}

TEST_CASE("A dead daemon's socket is replaced and removed at the end",
          "[rpc][run_dir][field][case-149]") {
  const TempFolder temp;
  std::filesystem::create_directory(temp.path() + "/run");
  {
    const absl::StatusOr<FdHandle> dead = ListenPackets(temp.path() + "/run/worker.sock");
    REQUIRE(dead.ok());
  }
  REQUIRE(std::filesystem::is_socket(temp.path() + "/run/worker.sock"));
  {
    absl::StatusOr<RunDir> dir = RunDir::Open(temp.path() + "/run");
    REQUIRE(dir.ok());
    REQUIRE(dir->ClaimSocket("worker.sock").ok());
    REQUIRE(ListenPackets(temp.path() + "/run/worker.sock").ok());
  }
  REQUIRE_FALSE(std::filesystem::exists(temp.path() + "/run/worker.sock"));
  REQUIRE(RunDir::Open(temp.path() + "/run").ok());
}

TEST_CASE("What is no socket is left as it is", "[rpc][run_dir][field][case-149]") {
  const TempFolder temp;
  absl::StatusOr<RunDir> dir = RunDir::Open(temp.path() + "/run");
  REQUIRE(dir.ok());
  std::ofstream(temp.path() + "/run/worker.sock") << "precious";
  const absl::StatusOr<std::string> claimed = dir->ClaimSocket("worker.sock");
  REQUIRE(claimed.status().code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(absl::StrContains(claimed.status().message(), "worker.sock is there and is no socket"));
  std::string content;
  std::ifstream(temp.path() + "/run/worker.sock") >> content;
  REQUIRE(content == "precious");
}

TEST_CASE("Exactly one of many starters has the directory", "[rpc][run_dir][field][case-149]") {
  const TempFolder temp;
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> winners{0};
    std::atomic<int> waiting{4};
    std::vector<std::thread> starters;
    for (int i = 0; i < 4; ++i) {
      starters.emplace_back([&] {
        absl::StatusOr<RunDir> dir = RunDir::Open(temp.path() + "/run");
        if (dir.ok()) winners.fetch_add(1);
        // All have tried before the winner lets go.
        waiting.fetch_sub(1);
        while (waiting.load() > 0) std::this_thread::yield();
      });
    }
    for (std::thread& starter : starters) starter.join();
    REQUIRE(winners.load() == 1);
  }
}

TEST_CASE("A run directory that cannot be used is refused by name", "[rpc][run_dir]") {
  const TempFolder temp;
  std::ofstream(temp.path() + "/file") << "";
  std::filesystem::create_directory(temp.path() + "/open");
  REQUIRE(::chmod((temp.path() + "/open").c_str(), 0777) == 0);
  const auto refusal = [](const std::string& path) {
    return std::string(RunDir::Open(path).status().message());
  };
  REQUIRE(
      absl::StrContains(refusal(temp.path() + "/no/such/run"), "no/such/run: cannot create it"));
  REQUIRE(absl::StrContains(refusal(temp.path() + "/file"), "file: is no directory"));
  REQUIRE(absl::StrContains(refusal(temp.path() + "/open"), "open: is writable by everyone"));
}

TEST_CASE("A socket path beyond the system's limit is refused with both lengths",
          "[rpc][run_dir]") {
  const TempFolder temp;
  const std::string deep = temp.path() + "/" + std::string(100, 'd');
  absl::StatusOr<RunDir> dir = RunDir::Open(deep);
  REQUIRE(dir.ok());
  const absl::StatusOr<std::string> claimed = dir->ClaimSocket("worker.sock");
  REQUIRE(absl::StrContains(claimed.status().message(),
                            absl::StrCat("has ", deep.size() + 12, " bytes")));
  REQUIRE(absl::StrContains(claimed.status().message(), "at most 107"));
}

}  // namespace
}  // namespace wb
