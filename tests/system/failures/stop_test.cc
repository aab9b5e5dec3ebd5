// What ends amid a transfer: a daemon or a trainer that is told to, one trainer of two.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"

#include "tests/support/catch.h"
#include "tests/system/failures/cluster.h"

namespace wb::test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("A daemon that is to stop amid a transfer does, and nobody is left with half a version",
          "[system][failures][field][case-161]") {
  const std::string node = GENERATE("n0", "n1");
  Cluster cluster({.bytes = 6 << 20, .more = "timeouts: {peer: 1s, drain: 1s}\n"});
  REQUIRE(cluster.Deliver(1).empty());
  cluster.daemon("n1").Order("payload hold 1");
  cluster.Begin(2, 60s);
  cluster.daemon("n1").AwaitReached("payload");
  DaemonProcess& stopping = cluster.daemon(node).process();
  stopping.Signal(SIGTERM);
  REQUIRE(stopping.Ends(5s) == "exited with code 0");
  REQUIRE_FALSE(std::filesystem::exists(stopping.worker_socket()));
  for (auto& [name, worker] : cluster.workers()) {
    const nlohmann::json said = worker.AwaitEnd(5s);
    CAPTURE(node, name, said.dump());
    REQUIRE((said.at("code") == "OK") == (name == "engine1/0"));
    REQUIRE(said.value("as_said", true));
  }
  cluster.Restart(node);
  cluster.daemon("n1").Order("release");
  cluster.AwaitLeader(node, true);
  REQUIRE(cluster.Deliver(3).empty());
}

TEST_CASE("A trainer that is to stop amid a transfer leaves nobody with half a version",
          "[system][failures][field][case-161]") {
  Cluster cluster({.bytes = 6 << 20, .more = "timeouts: {peer: 1s}\n"});
  REQUIRE(cluster.Deliver(1).empty());
  cluster.daemon("n1").Order("payload hold 1");
  cluster.Begin(2, 60s);
  cluster.daemon("n1").AwaitReached("payload");
  cluster.AwaitDelivery(2, "engine1", "committed");
  WorkerProcess& trainer = cluster.worker("policy/0");
  trainer.Signal(SIGTERM);
  REQUIRE(trainer.Await(5s).at("code") == "gone");
  for (auto& [name, worker] : cluster.workers()) {
    if (name == "policy/0") continue;
    const nlohmann::json said = worker.AwaitEnd(5s);
    CAPTURE(name, said.dump());
    const bool whole = name == "engine1/0";
    REQUIRE((said.at("code") == "OK") == whole);
    REQUIRE(said.at("memory") == (whole ? "valid" : "invalid"));
    REQUIRE(said.at("as_said") == true);
    if (!whole) REQUIRE(absl::StrContains(said.at("text").get<std::string>(), "policy/0"));
  }
  cluster.daemon("n1").Order("release");
  cluster.Replace("policy/0");
  REQUIRE(cluster.Deliver(3).empty());
}

TEST_CASE("A trainer that dies amid a transfer is named to the other trainers within two seconds",
          "[system][failures]") {
  const std::string victim = GENERATE("policy/0", "policy/1");
  const std::string other = victim == "policy/0" ? "policy/1" : "policy/0";
  const int signal = GENERATE(SIGKILL, SIGTERM);
  Cluster cluster({.bytes = 6 << 20, .more = "timeouts: {peer: 5s}\n", .trainers = 2});
  REQUIRE(cluster.Deliver(1).empty());
  cluster.daemon("n1").Order("payload hold 1");
  cluster.Begin(2, 60s);
  cluster.daemon("n1").AwaitReached("payload");
  cluster.AwaitDelivery(2, "engine1", "committed");
  cluster.worker(victim).Signal(signal);
  const nlohmann::json said = cluster.worker(other).Await(2s);
  CAPTURE(victim, signal, said.dump());
  REQUIRE(said.at("code") == "UNAVAILABLE");
  REQUIRE(absl::StrContains(said.at("text").get<std::string>(), victim + " (node "));
  REQUIRE(cluster.worker(victim).Await(5s).at("code") == "gone");
  for (const char* rollout : {"engine0/0", "engine0/1", "engine1/0"}) {
    const bool whole = std::string(rollout) == "engine1/0";
    const nlohmann::json ended = cluster.worker(rollout).AwaitEnd(2s);
    CAPTURE(rollout, ended.dump());
    REQUIRE((ended.at("code") == "OK") == whole);
    REQUIRE(ended.at("as_said") == true);
    if (!whole) REQUIRE(absl::StrContains(ended.at("text").get<std::string>(), victim + " (node "));
  }
  cluster.daemon("n1").Order("release");
  cluster.Replace(victim);
  REQUIRE(cluster.Deliver(3).empty());
}

}  // namespace
}  // namespace wb::test
