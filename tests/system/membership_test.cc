// Engines that come, go and come back, with real daemons.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"
#include "tests/system/daemon_talk.h"
#include "tests/system/tensor_worker.h"

namespace wb {
namespace {

using nlohmann::json;
using test::AddressOf;
using test::AskDaemon;
using test::DaemonProcess;
using test::kListen;
using test::Slack;
using test::TempFolder;
using test::TensorWorker;
using test::TextOf;
using weightbridge::MemoryState;
using weightbridge::Rollout;
using weightbridge::Trainer;
using namespace std::chrono_literals;

/// Daemons n0 (which leads), n1, ...
struct Daemons {
  explicit Daemons(int count, const std::string& more = "") {
    for (int i = 0; i < count; ++i) {
      const std::string leader = i == 0 ? kListen : AddressOf(*all[0]);
      all.push_back(std::make_unique<DaemonProcess>(
          DaemonProcess::Options{folder.path(), absl::StrCat("n", i), leader, i == 0 ? more : ""}));
      REQUIRE(all.back()->Start());
      REQUIRE(all.back()->Ready());
    }
  }
  std::string socket(std::size_t node) const { return all[node]->worker_socket(); }
  /// What `wbctl workers` shows of a group's rank 0.
  json Worker(const std::string& group) const {
    const json reply = AskDaemon(folder, "workers", *all[0]);
    for (const json& worker : reply.at("workers")) {
      if (worker.at("group") == group) return worker;
    }
    return {};
  }

  TempFolder folder;
  std::vector<std::unique_ptr<DaemonProcess>> all;
};

/// A rollout that waits for whatever comes at `version` or above and receives it.
std::string ReceiveNext(Rollout& rollout, std::uint64_t version) {
  const auto offered = rollout.WaitForVersion(version, Slack(10s));
  if (!offered.ok()) return TextOf(offered);
  return TextOf(rollout.Receive(*offered, {Slack(10s)}));
}

TEST_CASE("An engine that replaces a dead one gets the version it had, without the trainer",
          "[system][field][case-101]") {
  Daemons daemons(3);
  TensorWorker source(daemons.socket(0), "policy");
  TensorWorker first(daemons.socket(1), "engine0");
  TensorWorker second(daemons.socket(2), "engine1");
  auto trainer = Trainer::Join(source.options, source.layout);
  auto stays = Rollout::Join(first.options, first.layout);
  std::optional<weightbridge::Result<Rollout>> dies = Rollout::Join(second.options, second.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(stays) == "OK");
  REQUIRE(TextOf(*dies) == "OK");
  auto other = std::async(std::launch::async, [&] { return ReceiveNext(**dies, 5); });
  Update(*trainer, source, *stays, first, 5);
  REQUIRE(other.get() == "OK");
  dies.reset();
  source.Fill(99);  // the trainer's memory is its own again

  TensorWorker replacement(daemons.socket(2), "engine1");
  auto comes = Rollout::Join(replacement.options, replacement.layout);
  REQUIRE(TextOf(comes) == "OK");
  REQUIRE(comes->memory_state() == MemoryState::kEmpty);
  REQUIRE(comes->held_version() == 0);
  REQUIRE(daemons.Worker("engine1").at("memory") == "empty");
  REQUIRE(daemons.Worker("engine1").at("held_version") == 0);

  const auto offered = comes->WaitForVersion(1, Slack(10s));
  REQUIRE(TextOf(offered) == "OK");
  REQUIRE(*offered == 5);
  REQUIRE(comes->memory_state() == MemoryState::kEmpty);
  REQUIRE(TextOf(comes->Receive(5, {Slack(10s)})) == "OK");
  REQUIRE(replacement.Holds(5));
  REQUIRE(comes->memory_state() == MemoryState::kValid);
  REQUIRE(comes->held_version() == 5);
  REQUIRE(daemons.Worker("engine1").at("held_version") == 5);
  const json versions = AskDaemon(daemons.folder, "versions", *daemons.all[0]).at("versions");
  REQUIRE(versions.size() == 1);
  REQUIRE(versions[0].at("deliveries").back().at("sources") == "engine0");

  other = std::async(std::launch::async, [&] { return ReceiveNext(*comes, 6); });
  Update(*trainer, source, *stays, first, 6);
  REQUIRE(other.get() == "OK");
  REQUIRE(replacement.Holds(6));
}

TEST_CASE("An engine that restarts between plan and transfer is planned anew, for its new memory",
          "[system][field][case-93]") {
  Daemons daemons(2);
  TensorWorker source(daemons.socket(0), "policy");
  TensorWorker old(daemons.socket(1), "engine0");
  auto trainer = Trainer::Join(source.options, source.layout);
  std::optional<weightbridge::Result<Rollout>> rollout = Rollout::Join(old.options, old.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(*rollout) == "OK");
  Update(*trainer, source, **rollout, old, 1);

  source.Fill(2);
  auto published = std::async(std::launch::async, [&] {
    return TextOf(trainer->Publish(2, {"", Slack(10s)}));
  });
  REQUIRE((*rollout)->WaitForVersion(2, Slack(10s)).ok());  // it is planned
  rollout.reset();
  REQUIRE(absl::StrContains(published.get(), "engine0/0"));

  TensorWorker anew(daemons.socket(1), "engine0");
  rollout = Rollout::Join(anew.options, anew.layout);
  REQUIRE(TextOf(*rollout) == "OK");
  Update(*trainer, source, **rollout, anew, 3);
  REQUIRE(old.Holds(1));
}

TEST_CASE("A trainer waits for an engine that is late, and the daemons answer meanwhile",
          "[system][field][case-99]") {
  // Daemons are to answer each other within half of the time that the engine takes.
  Daemons daemons(2, "timeouts: {start: 60s, peer: 1s}");
  TensorWorker source(daemons.socket(0), "policy");
  TensorWorker target(daemons.socket(1), "engine0");
  auto trainer = Trainer::Join(source.options, source.layout);
  auto rollout = Rollout::Join(target.options, target.layout);
  REQUIRE(TextOf(trainer) == "OK");
  REQUIRE(TextOf(rollout) == "OK");
  source.Fill(1);
  auto published = std::async(std::launch::async, [&] {
    return TextOf(trainer->Publish(1, {"", Slack(30s)}));
  });
  REQUIRE(rollout->WaitForVersion(1, Slack(10s)).ok());
  const auto ready = std::chrono::steady_clock::now() + 2s;
  while (std::chrono::steady_clock::now() < ready) {
    const auto asked = std::chrono::steady_clock::now();
    const json status = AskDaemon(daemons.folder, "status", *daemons.all[0]);
    REQUIRE(absl::StrContains(status.at("waits").dump(), "engine0/0 (node n1) to accept"));
    REQUIRE(std::chrono::steady_clock::now() - asked < Slack(1s));
  }
  REQUIRE(published.wait_for(0s) == std::future_status::timeout);
  REQUIRE(TextOf(rollout->Receive(1, {Slack(10s)})) == "OK");
  REQUIRE(published.get() == "OK");
  REQUIRE(target.Holds(1));
}

/// Lines of a daemon's log that warn or report an error.
std::size_t Complaints(const DaemonProcess& daemon) {
  const std::vector<std::string> lines = absl::StrSplit(daemon.Log(), '\n');
  return static_cast<std::size_t>(
      std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return absl::StrContains(line, " W ") || absl::StrContains(line, " E ");
      }));
}

TEST_CASE("Workers come back to a leader that was killed, and versions go on where they were",
          "[system][field][case-114]") {
  const TempFolder folder;
  const std::string more = "timeouts: {peer: 1s}";
  auto leader =
      std::make_unique<DaemonProcess>(DaemonProcess::Options{folder.path(), "lead", kListen, more});
  REQUIRE(leader->Start());
  REQUIRE(leader->Ready());
  const std::string address = leader->Said("X_WB_LEADER");
  DaemonProcess n1({folder.path(), "n1", AddressOf(*leader), more});
  DaemonProcess n2({folder.path(), "n2", AddressOf(*leader), more});
  for (DaemonProcess* daemon : {&n1, &n2}) {
    REQUIRE(daemon->Start());
    REQUIRE(daemon->Ready());
  }
  std::vector<TensorWorker> memory;
  memory.reserve(4);
  for (const char* group : {"policy", "policy", "engine0", "engine0"}) {
    TensorWorker& worker =
        memory.emplace_back((memory.size() % 2 == 0 ? n1 : n2).worker_socket(), group);
    worker.options.rank = static_cast<std::int32_t>(memory.size() - 1) % 2;
    worker.options.world_size = 2;
  }
  std::vector<Trainer> trainers;
  std::vector<Rollout> rollouts;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    auto trainer = Trainer::Join(memory[rank].options, memory[rank].layout);
    REQUIRE(TextOf(trainer) == "OK");
    trainers.push_back(std::move(*trainer));
    auto rollout = Rollout::Join(memory[2 + rank].options, memory[2 + rank].layout);
    REQUIRE(TextOf(rollout) == "OK");
    rollouts.push_back(std::move(*rollout));
  }
  const auto publish = [&](std::uint64_t version) {
    std::vector<std::future<std::string>> calls;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      memory[rank].Fill(static_cast<float>(version));
      calls.push_back(std::async(std::launch::async, [&, rank] {
        return TextOf(trainers[rank].Publish(version, {"", Slack(10s)}));
      }));
      calls.push_back(std::async(
          std::launch::async, [&, rank, version] { return ReceiveNext(rollouts[rank], version); }));
    }
    for (auto& call : calls) REQUIRE(call.get() == "OK");
    REQUIRE(memory[2].Holds(static_cast<float>(version)));
    REQUIRE(memory[3].Holds(static_cast<float>(version)));
  };
  publish(7);

  leader->Signal(SIGKILL);
  REQUIRE(absl::StrContains(leader->Ends(), "signal 9"));
  leader = std::make_unique<DaemonProcess>(
      DaemonProcess::Options{folder.path(), "lead", "listen: '" + address + "'", more});
  REQUIRE(leader->Start());
  REQUIRE(leader->Ready());
  const auto back = std::chrono::steady_clock::now() + Slack(3s);  // of timeouts.peer each
  std::size_t members = 0;
  while (members < 4 && std::chrono::steady_clock::now() < back) {
    members = AskDaemon(folder, "workers", *leader).at("workers").size();
  }
  REQUIRE(members == 4);
  REQUIRE(absl::StrContains(TextOf(trainers[0].Publish(7, {"", Slack(10s)})), "not above 7"));
  publish(8);
  REQUIRE(Complaints(n1) <= 10);
  REQUIRE(Complaints(n2) <= 10);
}

TEST_CASE("A rank that restarts with its daemon costs one connection",
          "[system][field][case-102]") {
  Daemons daemons(4);
  TensorWorker source(daemons.socket(0), "policy");
  auto trainer = Trainer::Join(source.options, source.layout);
  REQUIRE(TextOf(trainer) == "OK");
  std::vector<std::unique_ptr<TensorWorker>> workers(3);
  std::vector<std::optional<Rollout>> ranks(3);
  const auto join = [&](std::size_t rank) {
    workers[rank] = std::make_unique<TensorWorker>(daemons.socket(rank + 1), "engine0");
    workers[rank]->options.rank = static_cast<std::int32_t>(rank);
    workers[rank]->options.world_size = 3;
    auto joined = Rollout::Join(workers[rank]->options, workers[rank]->layout);
    REQUIRE(TextOf(joined) == "OK");
    ranks[rank] = std::move(*joined);
  };
  for (std::size_t rank = 0; rank < 3; ++rank) join(rank);
  const auto update = [&](std::uint64_t version) {
    std::vector<std::future<std::string>> others;
    for (const std::size_t rank : {1U, 2U}) {
      others.push_back(
          std::async(std::launch::async, [&, rank] { return ReceiveNext(*ranks[rank], version); }));
    }
    Update(*trainer, source, *ranks[0], *workers[0], version);
    for (auto& other : others) REQUIRE(other.get() == "OK");
    for (const auto& worker : workers) REQUIRE(worker->Holds(static_cast<float>(version)));
  };
  const auto connects = [&] {
    std::map<std::string, int> by_peer;
    const json reply = AskDaemon(daemons.folder, "status", *daemons.all[0]);
    for (const json& lane : reply.at("lanes")) {
      by_peer[lane.at("peer")] = lane.at("connects");
    }
    return by_peer;
  };
  update(1);
  std::map<std::string, int> before = connects();
  REQUIRE(before == std::map<std::string, int>{{"n1", 1}, {"n2", 1}, {"n3", 1}});

  daemons.all[2]->Signal(SIGKILL);
  REQUIRE(absl::StrContains(daemons.all[2]->Ends(), "signal 9"));
  ranks[1].reset();
  REQUIRE(daemons.all[2]->Start());
  REQUIRE(daemons.all[2]->Ready());
  join(1);
  update(2);
  ++before["n2"];
  REQUIRE(connects() == before);
}

/// Rows [lo, hi) of a tensor w of 24 x 8, at one rank.
struct RowsWorker {
  weightbridge::SharedBuffer memory;
  weightbridge::Layout layout;
  weightbridge::JoinOptions options;
  std::vector<float> wanted;

  RowsWorker(std::int64_t lo, std::int64_t hi, weightbridge::JoinOptions join)
      : memory(*weightbridge::SharedBuffer::Create(static_cast<std::uint64_t>((hi - lo) * 8) * 4)),
        options(std::move(join)) {
    weightbridge::Param param("w", {hi - lo, 8});
    param.AddPiece({"w", {lo, 0}, {hi, 8}, {0, 0}, {}});
    REQUIRE(layout.AddTensor("w", weightbridge::Dtype::kFp32, {24, 8}).ok());
    REQUIRE(layout.AddParam(param).ok());
    REQUIRE(layout.SetBuffer("w", memory).ok());
    for (std::int64_t i = lo * 8; i < hi * 8; ++i) wanted.push_back(static_cast<float>(i));
  }
  float* values() const { return static_cast<float*>(memory.data()); }
};

std::string PublishFrom(const RowsWorker& worker) {
  auto trainer = Trainer::Join(worker.options, worker.layout);
  return trainer.ok() ? TextOf(trainer->Publish(1, {"", Slack(5s)})) : TextOf(trainer);
}

std::string ReceiveInto(const RowsWorker& worker) {
  auto rollout = Rollout::Join(worker.options, worker.layout);
  return rollout.ok() ? TextOf(rollout->Receive(1, {Slack(5s)})) : TextOf(rollout);
}

TEST_CASE("Any number of trainer ranks meets any number of rollout ranks",
          "[system][field][case-100]") {
  Daemons daemons(1);
  const auto options = [&](const std::string& job, const std::string& group, int rank, int ranks) {
    weightbridge::JoinOptions join;
    join.socket = daemons.socket(0);
    join.job = job;
    join.group = group;
    join.rank = rank;
    join.world_size = ranks;
    return join;
  };
  for (const int trainers : {1, 2, 3, 4, 8}) {
    for (const int rollouts : {1, 2, 3, 4, 8}) {
      const std::string job = absl::StrCat("job", trainers, "x", rollouts);
      CAPTURE(job);
      // Beyond four the trainers are replicas: some have nothing to send, and return all the same.
      const int parts = std::min(trainers, 4);
      std::vector<std::unique_ptr<RowsWorker>> sources;
      for (int rank = 0; rank < trainers; ++rank) {
        const std::int64_t lo = 24 / parts * (rank % parts);
        sources.push_back(std::make_unique<RowsWorker>(lo, lo + 24 / parts,
                                                       options(job, "policy", rank, trainers)));
        std::copy(sources.back()->wanted.begin(), sources.back()->wanted.end(),
                  sources.back()->values());
      }
      std::vector<std::unique_ptr<RowsWorker>> targets;
      for (int rank = 0; rank < rollouts; ++rank) {
        targets.push_back(std::make_unique<RowsWorker>(24 * rank / rollouts,
                                                       24 * (rank + 1) / rollouts,
                                                       options(job, "engine0", rank, rollouts)));
      }
      std::vector<std::future<std::string>> ends;
      for (const auto& source : sources) {
        ends.push_back(std::async(std::launch::async, [&source] { return PublishFrom(*source); }));
      }
      for (const auto& target : targets) {
        ends.push_back(std::async(std::launch::async, [&target] { return ReceiveInto(*target); }));
      }
      for (auto& end : ends) REQUIRE(end.get() == "OK");
      for (const auto& target : targets) {
        REQUIRE(std::equal(target->wanted.begin(), target->wanted.end(), target->values()));
      }
    }
  }
}

/// One version of a job of its own, from a trainer rank on each of three nodes to an engine on each
/// of them: every daemon connects to every other, and is connected to, at once.
void MoveAmongThree(const Daemons& daemons, const std::string& job) {
  const auto options = [&](const std::string& group, int node) {
    weightbridge::JoinOptions join;
    join.socket = daemons.socket(static_cast<std::size_t>(node));
    join.job = job;
    join.group = group;
    join.rank = group == "policy" ? node : 0;
    join.world_size = group == "policy" ? 3 : 1;
    return join;
  };
  std::vector<std::unique_ptr<RowsWorker>> sources;
  std::vector<std::unique_ptr<RowsWorker>> targets;
  std::vector<Rollout> engines;
  for (int node = 0; node < 3; ++node) {
    sources.push_back(
        std::make_unique<RowsWorker>(8 * node, 8 * node + 8, options("policy", node)));
    std::copy(sources.back()->wanted.begin(), sources.back()->wanted.end(),
              sources.back()->values());
    targets.push_back(
        std::make_unique<RowsWorker>(0, 24, options(absl::StrCat("engine", node), node)));
    auto joined = Rollout::Join(targets.back()->options, targets.back()->layout);
    REQUIRE(TextOf(joined) == "OK");
    engines.push_back(*std::move(joined));
  }
  std::vector<std::future<std::string>> ends;
  for (std::size_t node = 0; node < 3; ++node) {
    ends.push_back(
        std::async(std::launch::async, [&, node] { return PublishFrom(*sources[node]); }));
    ends.push_back(std::async(std::launch::async,
                              [&, node] { return TextOf(engines[node].Receive(1, {Slack(5s)})); }));
  }
  for (auto& end : ends) REQUIRE(end.get() == "OK");
  for (const auto& target : targets) {
    REQUIRE(std::equal(target->wanted.begin(), target->wanted.end(), target->values()));
  }
}

TEST_CASE("Three daemons that connect to each other at the same moment are all connected",
          "[system][field][case-110]") {
  Daemons daemons(3);
  const auto end = std::chrono::steady_clock::now() + 8s;  // of a slow machine
  int rounds = 0;
  while (rounds < 200 && std::chrono::steady_clock::now() < end) {
    CAPTURE(rounds);
    const auto start = std::chrono::steady_clock::now();
    MoveAmongThree(daemons, absl::StrCat("job", rounds));
    REQUIRE(std::chrono::steady_clock::now() - start < Slack(2s));
    ++rounds;
  }
  for (const auto& daemon : daemons.all) {
    const json lanes = AskDaemon(daemons.folder, "status", *daemon).at("lanes");
    REQUIRE(lanes.size() == 2);
    for (const json& lane : lanes) CHECK(lane.at("connects") == rounds);
  }
}

TEST_CASE("Every combination of the daemon's options delivers", "[system][field][case-94]") {
  for (const char* integrity : {"wire", "off"}) {
    for (const char* transports : {"tcp", "shm"}) {
      for (const char* format : {"text", "json"}) {
        for (const int threads : {1, 3}) {
          const std::string more = absl::StrCat(
              "integrity: ", integrity, "\nlog: {format: ", format, "}\ncopy_threads: ", threads);
          CAPTURE(more, transports);
          const TempFolder folder;
          std::vector<std::unique_ptr<DaemonProcess>> daemons;
          for (const char* node : {"n0", "n1"}) {
            DaemonProcess::Options options{
                folder.path(), node, daemons.empty() ? kListen : AddressOf(*daemons[0]), more};
            options.transports = transports;
            daemons.push_back(std::make_unique<DaemonProcess>(options));
            REQUIRE(daemons.back()->Start());
            REQUIRE(daemons.back()->Ready());
          }
          TensorWorker source(daemons[0]->worker_socket(), "policy");
          TensorWorker target(daemons[1]->worker_socket(), "engine0");
          auto trainer = Trainer::Join(source.options, source.layout);
          auto rollout = Rollout::Join(target.options, target.layout);
          REQUIRE(TextOf(trainer) == "OK");
          REQUIRE(TextOf(rollout) == "OK");
          Update(*trainer, source, *rollout, target, 1);
          REQUIRE(rollout->held_version() == 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace wb
