#include "tests/system/failures/cluster.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include <poll.h>

#include <grpcpp/client_context.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weightbridge/v1/status.grpc.pb.h"

#include "client/wbctl/dial.h"
#include "proto/v1.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{10};

/// Asks a daemon; nothing when it does not answer.
template <typename Request, typename Reply>
std::optional<Reply> Query(const DaemonProcess& daemon,
                           grpc::Status (v1::StatusService::Stub::*call)(grpc::ClientContext*,
                                                                         const Request&,
                                                                         Reply*),
                           const Request& request = {}) {
  DaemonAddress address;
  address.daemon = daemon.control();
  const auto stub = v1::StatusService::NewStub(Dial(address).value());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + Slack(kPatience));
  context.set_wait_for_ready(true);
  Reply reply;
  if (!((*stub).*call)(&context, request, &reply).ok()) return std::nullopt;
  return reply;
}

/// For what only another process knows.
template <typename Condition>
void AwaitThat(const std::string& what, std::chrono::milliseconds bound, const Condition& holds) {
  const auto deadline = Clock::now() + Slack(bound);
  while (!holds()) {
    if (Clock::now() > deadline) throw std::runtime_error("it does not come about that " + what);
    ::poll(nullptr, 0, 5);
  }
}

bool IsTrainer(const std::string& worker) {
  return absl::StartsWith(worker, "policy/");
}

// Engines are killed again and again here, and are to come back.
constexpr const char* kNoRetirement = ", retire_after: 0";

}  // namespace

Cluster::Cluster(Options options) : options_(std::move(options)) {
  AddDaemon("lead", absl::StrCat(kListen, kNoRetirement));
  leader_ = daemon("lead").process().Said("X_WB_LEADER");
  for (const char* node : {"n0", "n1", "n2"}) AddDaemon(node, "address: '" + leader_ + "'");
  const auto add = [this](const std::string& group, int rank, int world, const std::string& node) {
    const std::string name = absl::StrCat(group, "/", rank);
    const auto worker =
        workers_
            .try_emplace(name, WorkerProcess::Options{folder_.path(),
                                                      group == "policy" ? "trainer" : "rollout",
                                                      daemon(node).process().worker_socket(), group,
                                                      rank, world, options_.bytes})
            .first;
    Replace(worker->first);
  };
  add("policy", 0, options_.trainers, "n0");
  if (options_.trainers > 1) add("policy", 1, options_.trainers, "n2");
  add("engine0", 0, 2, "n1");
  add("engine0", 1, 2, "n2");
  add("engine1", 0, 1, "n2");
}

void Cluster::AddDaemon(const std::string& node, const std::string& leader) {
  daemons_[node] =
      std::make_unique<HeldProcess>(DaemonProcess::Options{.folder = folder_.path(),
                                                           .node = node,
                                                           .leader = leader,
                                                           .more = options_.more,
                                                           .transports = options_.transports});
  daemons_[node]->Start();
}

void Cluster::Restart(const std::string& node) {
  if (node == "lead") {
    AddDaemon(node, absl::StrCat("listen: '", leader_, "'", kNoRetirement));
  } else {
    daemon(node).Start();
  }
}

void Cluster::Stop(pid_t process) {
  ::kill(process, SIGSTOP);
  AwaitThat("a process that was sent SIGSTOP stops", kPatience, [process] {
    const std::filesystem::path tasks = absl::StrCat("/proc/", process, "/task");
    const std::filesystem::directory_iterator all(tasks);
    return std::all_of(begin(all), end(all), [](const auto& task) {
      const std::string stat = ReadWholeFile(task.path() / "stat");
      const std::size_t name_end = stat.rfind(')');  // the state comes after the name
      return name_end != std::string::npos && stat.substr(name_end, 3) == ") T";
    });
  });
}

void Cluster::AwaitLeader(const std::string& node, bool connected) {
  AwaitThat(node + (connected ? " has a leader" : " has lost its leader"), kPatience, [&] {
    const auto status =
        Query(daemon(node).process(), &v1::StatusService::Stub::GetStatus, v1::StatusRequest());
    return status.has_value() && status->leader_connected() == connected;
  });
}

void Cluster::Replace(const std::string& name) {
  worker(name).Start();
  const nlohmann::json joined = worker(name).Ask("join 10000", kPatience);
  if (joined.at("code") != "OK") throw std::runtime_error(name + ": " + joined.dump());
}

std::size_t Cluster::rollouts() const {
  return workers_.size() - static_cast<std::size_t>(options_.trainers);
}

bool Cluster::KnowsRollouts() {
  const auto listed =
      Query(daemon("lead").process(), &v1::StatusService::Stub::ListWorkers, v1::WorkersRequest());
  if (!listed.has_value()) return false;
  std::size_t trainers = 0;
  for (const v1::WorkerStatus& worker : listed->workers()) trainers += worker.group() == "policy";
  return static_cast<std::size_t>(listed->workers_size()) - trainers == rollouts();
}

void Cluster::Begin(std::uint64_t version, std::chrono::milliseconds timeout) {
  const std::string call = absl::StrCat(version, " ", timeout.count());
  for (auto& [name, worker] : workers_) {
    if (!IsTrainer(name)) worker.Tell("take " + call);
  }
  AwaitThat("the leader knows all rollouts", kPatience, [this] { return KnowsRollouts(); });
  for (auto& [name, worker] : workers_) {
    if (IsTrainer(name)) worker.Tell("publish " + call);
  }
}

std::string Cluster::Deliver(std::uint64_t version) {
  Begin(version, Slack(kPatience));
  std::string faults;
  for (auto& [name, worker] : workers_) {
    const nlohmann::json said = worker.AwaitEnd(kPatience);
    if (said.at("code") == "OK" && said.value("as_said", true)) continue;
    absl::StrAppend(&faults, "version ", version, " at ", name, ": ", said.dump(), "\n");
  }
  return faults;
}

void Cluster::AwaitDelivery(std::uint64_t version,
                            const std::string& group,
                            const std::string& state) {
  AwaitThat(absl::StrCat("version ", version, " to ", group, " is ", state), kPatience, [&] {
    const auto listed = Query(daemon("lead").process(), &v1::StatusService::Stub::ListVersions,
                              v1::VersionsRequest());
    if (!listed.has_value()) return false;
    for (const v1::VersionStatus& one : listed->versions()) {
      if (one.version() != version) continue;
      for (const v1::DeliveryStatus& delivery : one.deliveries()) {
        if (delivery.group() == group) return delivery.state() == state;
      }
    }
    return false;
  });
}

}  // namespace wb::test
