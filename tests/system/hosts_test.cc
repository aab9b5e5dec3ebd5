// Daemons on several hosts: network namespaces joined by a bridge, control under mutual TLS,
// weights over UCX on the interface between them.

#include "tests/support/hosts.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <grpcpp/client_context.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weightbridge/v1/status.grpc.pb.h"

#include "proto/v1.h"
#include "tests/support/catch.h"
#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/health.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using test::AskDaemon;
using test::Authority;
using test::BinaryOf;
using test::DaemonProcess;
using test::Exited;
using test::Hosts;
using test::kListen;
using test::LogShows;
using test::Slack;
using test::StatusBecomes;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using namespace std::chrono_literals;

/// A leader on host 0 and a daemon on each other one, with certificates of one CA.
class HostCluster {
 public:
  explicit HostCluster(std::size_t count, const Hosts& hosts) {
    for (std::size_t host = 0; host < count; ++host) {
      const std::string node = absl::StrCat("n", host);
      authority.Issue(node, "IP:" + Hosts::AddressOf(host));
      DaemonProcess::Options options{folder.path(), node, LeaderOf(host),
                                     "timeouts: {peer: 2s}\n" + authority.Yaml(node)};
      options.interface = Hosts::kInterface;
      options.prefix = hosts.On(host);
      daemons.push_back(std::make_unique<DaemonProcess>(options));
      REQUIRE(daemons.back()->Start());
      REQUIRE(daemons.back()->Ready());
    }
    for (const auto& daemon : daemons) {
      CAPTURE(daemon->Log());
      REQUIRE(StatusBecomes(folder, *daemon, "leader_connected", true, 10s));
    }
  }

  TempFolder folder;
  Authority authority;
  std::vector<std::unique_ptr<DaemonProcess>> daemons;

 private:
  std::string LeaderOf(std::size_t host) const {
    return host == 0 ? "listen: '" + Hosts::AddressOf(0) + ":0'" : test::AddressOf(*daemons[0]);
  }
};

/// Whether the hosts are there; says why not.
bool There(const Hosts& hosts) {
  if (hosts.missing().empty()) return true;
  WARN("skipped: " << hosts.missing());
  return false;
}

TEST_CASE("Versions move between three hosts, and over the interface that is configured",
          "[system][hosts]") {
  const Hosts hosts(3);
  if (!There(hosts)) return;
  const HostCluster cluster(3, hosts);
  REQUIRE(absl::StartsWith(cluster.daemons[0]->Said("X_WB_LEADER"), "10.77.0.1:"));
  constexpr std::int64_t kRows = 4 * 1024;  // of 256 FP32: 4 MiB
  constexpr std::uint64_t kBytes = kRows * 256 * 4;
  TensorWorker source(cluster.daemons[1]->worker_socket(), "policy", kRows, 256);
  TensorWorker target(cluster.daemons[2]->worker_socket(), "engine0", kRows, 256);
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  const std::uint64_t before = hosts.SentBytes(1);
  const std::uint64_t leader_before = hosts.SentBytes(0);
  for (std::uint64_t version = 1; version <= 3; ++version) {
    Update(*trainer, source, *rollout, target, version);
  }
  REQUIRE(hosts.SentBytes(1) - before > 3 * kBytes);
  // The leader carries words only.
  REQUIRE(hosts.SentBytes(0) - leader_before < kBytes / 16);
  const nlohmann::json versions =
      AskDaemon(cluster.folder, "versions", *cluster.daemons[0]).at("versions");
  REQUIRE(versions.size() == 3);
  for (const nlohmann::json& version : versions) {
    const nlohmann::json& delivery = version.at("deliveries").at(0);
    CHECK(delivery.at("state") == (version == versions[0] ? "committed" : "retired"));
    CHECK(delivery.at("bytes_by_path").at("tcp") == kBytes);
    CHECK(delivery.at("bytes_planned") == kBytes);
  }
  const nlohmann::json status = AskDaemon(cluster.folder, "status", *cluster.daemons[2]);
  REQUIRE(absl::StartsWith(status.at("data_address").get<std::string>(), "wbe0 10.77.0.3"));
}

/// A trainer on host 0 and a rollout on host 1 that holds the same 1 MiB.
struct HostPair {
  explicit HostPair(const Hosts& hosts) : cluster(2, hosts) {
    REQUIRE(TextOf(trainer) == "OK");
    REQUIRE(TextOf(rollout) == "OK");
  }
  void Update(std::uint64_t version) { test::Update(*trainer, source, *rollout, target, version); }
  /// Lanes that the trainer's daemon has made to the rollout's.
  int Connects() const {
    const nlohmann::json status = AskDaemon(cluster.folder, "status", *cluster.daemons[0]);
    return status.at("lanes").at(0).at("connects").get<int>();
  }

  const HostCluster cluster;
  const TensorWorker source{cluster.daemons[0]->worker_socket(), "policy", 256, 1024};
  const TensorWorker target{cluster.daemons[1]->worker_socket(), "engine0", 256, 1024};
  weightbridge::Result<weightbridge::Trainer> trainer =
      weightbridge::Trainer::Join(source.options, source.layout);
  weightbridge::Result<weightbridge::Rollout> rollout =
      weightbridge::Rollout::Join(target.options, target.layout);
};

/// Health and status of a daemon, asked in turns until `until` is there: the slowest answer, and
/// every state that was told.
struct Probe {
  std::chrono::steady_clock::duration slowest{};
  std::set<std::string> states;
  bool healthy = true;

  void Ask(const DaemonProcess& daemon) {
    const auto stub = v1::StatusService::NewStub(test::ChannelTo(daemon.control()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 5s);
    v1::StatusReply reply;
    const auto start = std::chrono::steady_clock::now();
    healthy = healthy && test::HealthOf(daemon.control()) == "SERVING";
    slowest = std::max(slowest, std::chrono::steady_clock::now() - start);
    const auto next = std::chrono::steady_clock::now();
    healthy = healthy && stub->GetStatus(&context, {}, &reply).ok();
    slowest = std::max(slowest, std::chrono::steady_clock::now() - next);
    states.insert(reply.state());
  }
};

TEST_CASE("While a slow transfer lasts, daemons answer at once that they are updating",
          "[system][hosts][field][case-99][case-108]") {
  const Hosts hosts(2);
  if (!There(hosts)) return;
  const HostCluster cluster(2, hosts);
  // 8 MiB at 5 MiB/s.
  const std::string slow = hosts.Tc(0, {"qdisc", "add", "dev", Hosts::kInterface, "root", "tbf",
                                        "rate", "40mbit", "burst", "64kb", "latency", "100ms"});
  if (!slow.empty()) {
    WARN("skipped: tc: " << slow);
    return;
  }
  const TensorWorker source(cluster.daemons[0]->worker_socket(), "policy", 2048, 1024);
  const TensorWorker target(cluster.daemons[1]->worker_socket(), "engine0", 2048, 1024);
  auto trainer = weightbridge::Trainer::Join(source.options, source.layout);
  auto rollout = weightbridge::Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  Probe idle;
  idle.Ask(*cluster.daemons[0]);
  REQUIRE(idle.states == std::set<std::string>{"idle"});
  auto update =
      std::async(std::launch::async, [&] { Update(*trainer, source, *rollout, target, 1); });
  Probe probes[2];
  while (update.wait_for(50ms) != std::future_status::ready) {
    for (std::size_t host = 0; host < 2; ++host) probes[host].Ask(*cluster.daemons[host]);
  }
  update.get();
  for (const Probe& probe : probes) {
    CHECK(probe.healthy);
    CHECK(probe.states.contains("updating"));
    CHECK(probe.slowest < Slack(200ms));
  }
}

TEST_CASE("A host that is cut off is named within timeouts.peer and comes back",
          "[system][hosts]") {
  const Hosts hosts(2);
  if (!There(hosts)) return;
  const HostCluster cluster(2, hosts);
  hosts.Ip(1, {"link", "set", Hosts::kInterface, "down"});
  REQUIRE(StatusBecomes(cluster.folder, *cluster.daemons[1], "leader_connected", false, 5s));
  REQUIRE(LogShows(*cluster.daemons[0], "node=n1 lost"));
  REQUIRE(AskDaemon(cluster.folder, "status", *cluster.daemons[0]).at("leader_connected") == true);
  hosts.Ip(1, {"link", "set", Hosts::kInterface, "up"});
  REQUIRE(StatusBecomes(cluster.folder, *cluster.daemons[1], "leader_connected", true, 10s));
}

TEST_CASE("Hosts of different MTU exchange versions", "[system][hosts][field][case-133]") {
  const Hosts hosts(2);
  if (!There(hosts)) return;
  const std::size_t jumbo =
      GENERATE(as<std::size_t>{}, 0, 1);  // of the trainer's host, of the rollout's
  CAPTURE(jumbo);
  hosts.Ip(jumbo, {"link", "set", Hosts::kInterface, "mtu", "9000"});
  HostPair pair(hosts);
  for (std::uint64_t version = 1; version <= 3; ++version) pair.Update(version);
}

TEST_CASE("After a link went down amid a transfer the lane over it is a new one, and as good",
          "[system][hosts][field][case-134]") {
  const Hosts hosts(2);
  if (!There(hosts)) return;
  HostPair pair(hosts);
  pair.Update(1);
  REQUIRE(pair.Connects() == 1);
  // 1 MiB at 512 KiB/s.
  const std::string slow = hosts.Tc(0, {"qdisc", "add", "dev", Hosts::kInterface, "root", "tbf",
                                        "rate", "4mbit", "burst", "64kb", "latency", "100ms"});
  if (!slow.empty()) {
    WARN("skipped: tc: " << slow);
    return;
  }
  const std::uint64_t before = hosts.SentBytes(0);
  auto received =
      std::async(std::launch::async, [&] { return pair.rollout->Receive(2, {Slack(10s)}); });
  auto published = std::async(std::launch::async, [&] {
    return pair.trainer->Publish(2, {"", Slack(10s)});
  });
  const auto bound = std::chrono::steady_clock::now() + Slack(10s);
  while (hosts.SentBytes(0) - before < 192 << 10) {
    REQUIRE(std::chrono::steady_clock::now() < bound);
  }
  hosts.Ip(1, {"link", "set", Hosts::kInterface, "down"});
  // When they return nothing of the transfer is under way any more.
  const auto report = published.get();
  CAPTURE(TextOf(report));
  REQUIRE_FALSE(report.ok());
  REQUIRE(absl::StrContains(report.error().message, "n1"));
  REQUIRE_FALSE(received.get().ok());

  REQUIRE(hosts.Tc(0, {"qdisc", "delete", "dev", Hosts::kInterface, "root"}).empty());
  hosts.Ip(1, {"link", "set", Hosts::kInterface, "up"});
  REQUIRE(
      StatusBecomes(pair.cluster.folder, *pair.cluster.daemons[1], "leader_connected", true, 10s));
  for (std::uint64_t version = 3; version <= 4; ++version) pair.Update(version);
  const auto start = std::chrono::steady_clock::now();
  pair.Update(5);
  CHECK(std::chrono::steady_clock::now() - start < Slack(1s));
  REQUIRE(pair.Connects() == 2);
}

TEST_CASE("A daemon that would offer its loopback to other hosts is warned of",
          "[system][hosts][field][case-116]") {
  const Hosts hosts(1);
  if (!There(hosts)) return;
  const TempFolder folder;
  const Authority authority;
  authority.Issue("n0", "IP:10.77.0.1");
  DaemonProcess::Options options{folder.path(), "n0", "listen: '10.77.0.1:0'",
                                 authority.Yaml("n0")};
  options.prefix = hosts.On(0);
  DaemonProcess daemon(options);
  REQUIRE(daemon.Start());
  REQUIRE(daemon.Ready());
  REQUIRE(LogShows(daemon, "data.interface: 'lo' has the address 127.0.0.1"));
}

struct Interface {
  std::string name;
  std::vector<std::string> address;  // for `ip address add`; empty: none
  bool up;
  std::string more;     // in the section data
  std::string refusal;  // empty: taken
};

TEST_CASE("An interface that is public, down or without an address carries no weights",
          "[system][hosts]") {
  const Hosts hosts(1);
  if (!There(hosts)) return;
  const TempFolder folder;
  const std::vector<Interface> cases = {
      {"wbx0", {"203.0.113.5/24"}, true, "", "'wbx0' has the public address 203.0.113.5"},
      {"wbx1", {"203.0.113.6/24"}, true, ", insecure: true", ""},
      {"wbx2", {"10.1.2.3/24"}, false, "", "'wbx2' is down"},
      {"wbx3", {}, true, "", "'wbx3' has no IPv4 address"},
      {"wbx4", {"10.1.3.3/24", "203.0.113.7/24"}, true, "", "the public address 203.0.113.7"},
      {"wbx5", {"10.1.4.3/24", "2001:db8::5/64"}, true, "", "the public address 2001:db8::5"},
      {"wbx6", {"fd00::6/64"}, true, "", "'wbx6' has no IPv4 address"},
      {"wbx7", {"192.168.7.7/24"}, true, "", ""},
      {"wbx8", {}, true, ", insecure: true", "'wbx8' has no IPv4 address"},
  };
  for (const Interface& one : cases) {
    hosts.Ip(0, {"link", "add", one.name, "type", "veth", "peer", "name", one.name + "p"});
    for (const std::string& address : one.address) {
      hosts.Ip(0, {"address", "add", address, "dev", one.name, "noprefixroute"});
    }
    if (one.up) {
      hosts.Ip(0, {"link", "set", one.name, "up"});
      hosts.Ip(0, {"link", "set", one.name + "p", "up"});
    }
    DaemonProcess::Options options{folder.path(), one.name, kListen, ""};
    options.interface = one.name + one.more;
    options.prefix = hosts.On(0);
    DaemonProcess daemon(options);
    std::vector<std::string> check = hosts.On(0);
    check.insert(check.end(),
                 {BinaryOf("weightbridged"), "--config", daemon.config(), "--check-config"});
    const test::Finished checked = test::RunProgram(folder.path(), check);
    CAPTURE(one.name, checked.output);
    CHECK(checked.code == (one.refusal.empty() ? 0 : 2));
    CHECK(absl::StrContains(checked.output, one.refusal));
    REQUIRE(daemon.Start());
    if (one.refusal.empty()) {
      CHECK(daemon.Ready());
    } else {
      CHECK(daemon.Ends() == Exited(1));
      CHECK(absl::StrContains(daemon.Log(), one.refusal));
    }
  }
}

}  // namespace
}  // namespace wb
