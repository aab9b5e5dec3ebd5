#include "tests/transport/peer_process.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spawn.h>

#include "tests/support/catch.h"
#include "tests/support/time_slack.h"
#include "tests/transport/fabric_pair.h"

namespace wb::test {
namespace {

constexpr char kRoleVariable[] = "WB_TEST_PEER_ROLE";
constexpr int kLifeFd = 9;  // in the child

/// The child's main: "TRANSPORTS lander" or "TRANSPORTS sender ADDRESS BYTES".
void RunPeer(const std::string& role) {
  std::istringstream words(role);
  std::string transports;
  std::string kind;
  std::string address;
  std::uint64_t bytes = 0;
  words >> transports >> kind >> address >> bytes;
  UcxKind fabrics(transports);
  Side side(fabrics, 64 << 20);
  Fill(side.memory(), std::byte{0x77});
  side.decide = [](const Side::Seen& seen) -> Side::Decision {
    return std::optional<Landing>(Landing{{Side::kMemory, 0, seen.bytes}, 0});
  };
  const std::string& own = side.fabric->address();
  if (write(kLifeFd, own.data(), own.size()) < 0) std::_Exit(1);
  std::optional<EndpointId> to;
  if (kind == "sender") to = side.fabric->Connect(address).value();
  std::uint64_t in_flight = 0;
  while (true) {
    while (to && in_flight < 4 && side.fabric->Send(*to, {}, {Side::kMemory, 0, bytes}, 0).ok()) {
      ++in_flight;
    }
    const bool any = side.fabric->Progress(side.events);
    in_flight -= static_cast<std::uint64_t>(
        std::ranges::count(side.events, FabricEvent::Kind::kSent,
                           [](const FabricEvent& event) { return event.kind; }));
    side.events.clear();
    if (any || !side.fabric->Arm().value()) continue;
    pollfd watched[] = {{side.fabric->wakeup_fd(), POLLIN, 0}, {kLifeFd, POLLIN, 0}};
    poll(watched, 2, 1000);
    if (watched[1].revents != 0) return;
  }
}

// Hidden: not a test but the other process of one.
TEST_CASE("peer process", "[.peer]") {
  const char* role = std::getenv(kRoleVariable);
  REQUIRE(role != nullptr);
  RunPeer(role);
}

}  // namespace

PeerProcess::PeerProcess(FdHandle life, pid_t pid, std::string address)
    : life_(std::move(life)), pid_(pid), address_(std::move(address)) {}

PeerProcess PeerProcess::Start(const std::string& role, std::vector<std::string> argv) {
  int ends[2] = {};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  FdHandle ours(ends[0]);
  const FdHandle theirs(ends[1]);

  std::vector<std::string> environment{std::string(kRoleVariable) + "=" + role};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  std::vector<char*> envp;
  for (std::string& entry : environment) envp.push_back(entry.data());
  envp.push_back(nullptr);
  argv.insert(argv.end(), {std::filesystem::read_symlink("/proc/self/exe").string(), "[.peer]"});
  std::vector<char*> argp;
  for (std::string& word : argv) argp.push_back(word.data());
  argp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kLifeFd);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // UCX's sockets would stay open there, and its listener's port be taken.
  posix_spawn_file_actions_addclosefrom_np(&actions, kLifeFd + 1);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, argp[0], &actions, nullptr, argp.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(failed == 0);

  PeerProcess peer(std::move(ours), pid, "");
  pollfd watched{peer.life_.get(), POLLIN, 0};
  REQUIRE(poll(&watched, 1, static_cast<int>(Slack(std::chrono::seconds(20)).count())) == 1);
  std::string address(256, '\0');
  const ssize_t bytes = read(peer.life_.get(), address.data(), address.size());
  REQUIRE(bytes > 0);
  peer.address_ = address.substr(0, static_cast<std::size_t>(bytes));
  return peer;
}

PeerProcess PeerProcess::Lander(const std::string& transports) {
  return Start(transports + " lander");
}

PeerProcess PeerProcess::LanderInOwnPids(const std::string& transports, bool own_proc) {
  std::vector<std::string> command{"unshare", "--pid", "--fork", "--kill-child"};
  if (own_proc) command.emplace_back("--mount-proc");
  return Start(transports + " lander", std::move(command));
}

PeerProcess PeerProcess::Sender(const std::string& transports,
                                const std::string& address,
                                std::uint64_t bytes) {
  return Start(transports + " sender " + address + " " + std::to_string(bytes));
}

PeerProcess::~PeerProcess() {
  if (!life_) return;  // moved from
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void PeerProcess::Signal(int number) const {
  REQUIRE(kill(pid_, number) == 0);
  if (number != SIGSTOP) return;
  int status = 0;
  REQUIRE(waitpid(pid_, &status, WUNTRACED) == pid_);
  REQUIRE(WIFSTOPPED(status));
}

}  // namespace wb::test
