#include "client/wbctl/rehearse/cluster.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "client/wbctl/rehearse/daemon_config.h"
#include "client/wbctl/rehearse/run_directory.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kLogLines = 20;
constexpr std::chrono::milliseconds kLeaveTimeout{15'000};
/// Workers' own deadlines end first: their errors say more than ours.
constexpr std::chrono::milliseconds kGrace{5'000};
/// When a worker reports an error, a process that was killed shows within this time: then that is
/// the cause, not the report.
constexpr std::chrono::milliseconds kSettle{1'000};

fs::path DaemonDirectory(const fs::path& run_directory, std::size_t node) {
  return run_directory / absl::StrCat("d", node);
}

/// The value of NAME=VALUE among the lines of a notice; "" when it is not there.
std::string ValueOf(const std::string& notice, const std::string& name) {
  for (const absl::string_view line : absl::StrSplit(notice, '\n')) {
    if (absl::StartsWith(line, name + "=")) return std::string(line.substr(name.size() + 1));
  }
  return "";
}

std::vector<std::size_t> Range(std::size_t begin, std::size_t end) {
  std::vector<std::size_t> range;
  range.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) range.push_back(i);
  return range;
}

std::vector<StepReport> InOrder(const std::map<std::size_t, StepReport>& reports) {
  std::vector<StepReport> ordered;
  ordered.reserve(reports.size());
  for (const auto& [worker, report] : reports) ordered.push_back(report);
  return ordered;
}

/// The workers that have not reported.
std::vector<std::size_t> Without(const std::vector<std::size_t>& workers,
                                 const std::map<std::size_t, StepReport>& reports) {
  std::vector<std::size_t> left;
  for (const std::size_t worker : workers) {
    if (reports.count(worker) == 0) left.push_back(worker);
  }
  return left;
}

/// What a worker registers, made when it is needed: as its file says it, if there is a file of it.
v1::Layout WireOf(const LoadedJob& job, std::size_t worker) {
  return job.wire.empty() ? ToProto(RegistrationOf(job.job, job.job.layouts[worker]))
                          : job.wire[worker];
}

}  // namespace

Cluster::Cluster(const LoadedJob& job, ClusterOptions options, Supervisor supervisor)
    : job_(job), options_(std::move(options)), supervisor_(std::move(supervisor)) {
  for (const Layout& layout : job_.job.layouts) {
    if (node_of_.emplace(layout.node, nodes_.size()).second) nodes_.push_back(layout.node);
  }
}

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(const LoadedJob& job,
                                                        const ClusterOptions& options,
                                                        const WorkerSpec& common,
                                                        const StopSignals& signals) {
  WB_ASSIGN_OR_RETURN(Supervisor supervisor,
                      Supervisor::Create(options.run_directory / "notify", signals));
  std::unique_ptr<Cluster> cluster(new Cluster(job, options, std::move(supervisor)));
  WB_RETURN_IF_ERROR(cluster->StartDaemons());
  WB_RETURN_IF_ERROR(cluster->StartWorkers(common));
  return cluster;
}

absl::Status Cluster::StartDaemons() {
  WB_RETURN_IF_ERROR(StartDaemon(0, ""));
  WB_ASSIGN_OR_RETURN(const std::string leader, AwaitReady(0, 1));
  if (leader.empty()) {
    return absl::InternalError(
        absl::StrCat(Describe(0), " is ready and did not say where it leads\n", Log(0)));
  }
  for (std::size_t i = 1; i < nodes_.size(); ++i) WB_RETURN_IF_ERROR(StartDaemon(i, leader));
  return AwaitReady(1, nodes_.size() - 1).status();
}

std::size_t Cluster::WorkersOn(const std::string& node) const {
  return static_cast<std::size_t>(
      std::count_if(job_.job.layouts.begin(), job_.job.layouts.end(),
                    [&](const Layout& layout) { return layout.node == node; }));
}

absl::Status Cluster::StartDaemon(std::size_t node, const std::string& leader_address) {
  const fs::path directory = DaemonDirectory(options_.run_directory, node);
  const fs::path config_path = directory.string() + ".yaml";
  const std::string config = ToYaml({.node = nodes_[node],
                                     .run_dir = directory,
                                     .leader_address = leader_address,
                                     .transport = options_.transport,
                                     .workers = WorkersOn(nodes_[node]),
                                     .start = options_.timeout});
  WB_RETURN_IF_ERROR(WriteTextFile(config_path, config));
  WB_ASSIGN_OR_RETURN(
      const std::size_t child,
      supervisor_.StartNotifying(
          {.name = absl::StrCat("daemon of node ", nodes_[node]),
           .argv = {options_.daemon_binary.string(), "--config", config_path.string()},
           .environment = {},
           .log = directory.string() + ".log"}));
  if (options_.progress) options_.progress(Describe(child));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Cluster::AwaitReady(std::size_t first, std::size_t count) {
  const std::string doing = "starting the daemons";
  std::vector<std::size_t> left = Range(first, first + count);
  std::string leader;
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  while (!left.empty()) {
    WB_ASSIGN_OR_RETURN(const auto event, supervisor_.Next(deadline));
    if (!event) return Late(left, doing);
    if (event->kind != SupervisorEvent::Kind::kNotified) return Failure(*event, doing);
    const std::string address = ValueOf(event->text, "X_WB_LEADER");
    if (!address.empty()) leader = address;
    if (ValueOf(event->text, "READY") == "1") {
      left.erase(std::remove(left.begin(), left.end(), event->child), left.end());
    }
  }
  return leader;
}

absl::Status Cluster::StartWorkers(const WorkerSpec& common) {
  std::map<std::string, std::int32_t> world_sizes;
  for (const Layout& layout : job_.job.layouts) ++world_sizes[layout.name.group];
  for (std::size_t i = 0; i < job_.job.layouts.size(); ++i) {
    const Layout& layout = job_.job.layouts[i];
    WorkerSpec spec = common;
    spec.world_size = world_sizes[layout.name.group];
    spec.socket =
        (DaemonDirectory(options_.run_directory, node_of_[layout.node]) / "worker.sock").string();
    spec.flip = layout.name.ToString() == options_.flip;
    WB_RETURN_IF_ERROR(StartWorker(i, std::move(spec)));
  }
  return AwaitReports(Range(nodes_.size(), supervisor_.size()), Step::kJoin, "joining").status();
}

absl::Status Cluster::StartWorker(std::size_t worker, WorkerSpec spec) {
  const fs::path stem = options_.run_directory / absl::StrCat("w", worker);
  spec.layout = stem.string() + ".layout";
  const fs::path spec_path = stem.string() + ".json";
  WB_RETURN_IF_ERROR(WriteTextFile(spec.layout, WireOf(job_, worker).SerializeAsString()));
  WB_RETURN_IF_ERROR(WriteTextFile(spec_path, ToJson(spec)));
  WB_ASSIGN_OR_RETURN(
      const std::size_t child,
      supervisor_.StartControlled(
          {.name = absl::StrCat("worker ", job_.job.layouts[worker].name.ToString()),
           .argv = {options_.worker_binary.string(), "rehearse-worker", spec_path.string()},
           .environment = {},
           .log = stem.string() + ".log"}));
  if (options_.progress) options_.progress(Describe(child));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StepReport>> Cluster::Take(const Order& order,
                                                      const std::string& only_group) {
  const std::string doing = order.version == 0
                                ? std::string(StepName(order.step))
                                : absl::StrCat(StepName(order.step), " of version ", order.version);
  const std::string message = ToJson(order);
  std::vector<std::size_t> workers;
  for (std::size_t i = 0; i < job_.job.layouts.size(); ++i) {
    if (only_group.empty() || job_.job.layouts[i].name.group == only_group) {
      workers.push_back(nodes_.size() + i);
    }
  }
  for (const std::size_t worker : workers) {
    const absl::Status sent = supervisor_.Send(worker, message);
    if (!sent.ok()) return Explain(sent);
  }
  return AwaitReports(workers, order.step, doing);
}

absl::StatusOr<std::vector<StepReport>> Cluster::AwaitReports(
    const std::vector<std::size_t>& workers, Step step, const std::string& doing) {
  std::map<std::size_t, StepReport> reports;
  absl::Status failed;  // the first error that a worker told
  Clock::time_point deadline = Clock::now() + options_.timeout + kGrace;
  while (reports.size() < workers.size()) {
    WB_ASSIGN_OR_RETURN(const auto event, supervisor_.Next(deadline));
    if (!event) return failed.ok() ? Late(Without(workers, reports), doing) : failed;
    if (event->kind == SupervisorEvent::Kind::kNotified) continue;  // a daemon's status line
    if (event->kind != SupervisorEvent::Kind::kSaid) return Failure(*event, doing);
    absl::StatusOr<StepReport> report = ReadReport(*event, step, doing);
    if (report.ok()) {
      reports[event->child] = *std::move(report);
    } else if (failed.ok()) {
      failed = report.status();
      deadline = std::min(deadline, Clock::now() + kSettle);
    }
  }
  return InOrder(reports);
}

absl::StatusOr<StepReport> Cluster::ReadReport(const SupervisorEvent& event,
                                               Step step,
                                               const std::string& doing) const {
  WB_ASSIGN_OR_RETURN(StepReport report, StepReportFromJson(event.text));
  if (report.step != step) {
    return absl::InternalError(
        absl::StrCat(Describe(event.child), " reports ", StepName(report.step), " during ", doing));
  }
  if (report.error.empty()) return report;
  return absl::InternalError(absl::StrCat(Describe(event.child), " failed, ", doing, ": ",
                                          report.error, "\n", Log(event.child)));
}

absl::Status Cluster::Leave() {
  const std::vector<std::size_t> workers = Range(nodes_.size(), supervisor_.size());
  for (const std::size_t worker : workers) {
    const absl::Status sent =
        supervisor_.Send(worker, ToJson(Order{.step = Step::kLeave, .paths = {}}));
    if (!sent.ok()) return Explain(sent);
  }
  WB_RETURN_IF_ERROR(AwaitEnds(workers, "leaving"));
  const std::vector<std::size_t> daemons = Range(0, nodes_.size());
  for (const std::size_t daemon : daemons) supervisor_.child(daemon).Signal(SIGTERM);
  return AwaitEnds(daemons, "draining");
}

absl::Status Cluster::AwaitEnds(const std::vector<std::size_t>& children,
                                const std::string& doing) {
  std::set<std::size_t> left(children.begin(), children.end());
  const Clock::time_point deadline = Clock::now() + kLeaveTimeout;
  while (!left.empty()) {
    WB_ASSIGN_OR_RETURN(const auto event, supervisor_.Next(deadline));
    if (!event) return Late({left.begin(), left.end()}, doing);
    if (event->kind == SupervisorEvent::Kind::kNotified) continue;  // "STOPPING=1"
    const bool well = event->kind == SupervisorEvent::Kind::kEnded &&
                      supervisor_.child(event->child).succeeded() && left.erase(event->child) == 1;
    if (!well) return Failure(*event, doing);
  }
  return absl::OkStatus();
}

absl::Status Cluster::Failure(const SupervisorEvent& event, const std::string& doing) {
  switch (event.kind) {
    case SupervisorEvent::Kind::kSignal:
      return absl::CancelledError(
          absl::StrCat("stopped by ", ::sigdescr_np(event.signal), ", ", doing));
    case SupervisorEvent::Kind::kEnded:
      return absl::UnavailableError(absl::StrCat(Describe(event.child), " ",
                                                 supervisor_.child(event.child).Ended(), ", ",
                                                 doing, "\n", Log(event.child)));
    case SupervisorEvent::Kind::kSaid:
    case SupervisorEvent::Kind::kNotified:
      break;
  }
  return absl::InternalError(
      absl::StrCat(Describe(event.child), " said out of turn, ", doing, ": ", event.text));
}

absl::Status Cluster::Explain(const absl::Status& status) {
  const Clock::time_point deadline = Clock::now() + kSettle;
  while (true) {
    WB_ASSIGN_OR_RETURN(const auto event, supervisor_.Next(deadline));
    if (!event) return status;
    if (event->kind == SupervisorEvent::Kind::kEnded ||
        event->kind == SupervisorEvent::Kind::kSignal) {
      return Failure(*event, std::string(status.message()));
    }
  }
}

absl::Status Cluster::Late(const std::vector<std::size_t>& children,
                           const std::string& doing) const {
  std::string text = absl::StrCat("late, ", doing, ":\n");
  for (const std::size_t child : children) {
    absl::StrAppend(&text, Describe(child), "\n", Log(child));
  }
  return absl::DeadlineExceededError(text);
}

std::string Cluster::Describe(std::size_t child) const {
  return absl::StrCat(supervisor_.child(child).name(), " (pid ", supervisor_.child(child).pid(),
                      ")");
}

std::string Cluster::Log(std::size_t child) const {
  const std::string tail = Tail(supervisor_.child(child).log(), kLogLines, "    ");
  return tail.empty() ? "  its log is empty\n" : absl::StrCat("  its log ends with:\n", tail);
}

std::string Cluster::leader_target() const {
  return absl::StrCat("unix:",
                      (DaemonDirectory(options_.run_directory, 0) / "control.sock").string());
}

std::vector<pid_t> Cluster::daemon_pids() const {
  std::vector<pid_t> pids;
  for (std::size_t i = 0; i < nodes_.size(); ++i) pids.push_back(supervisor_.child(i).pid());
  return pids;
}

std::vector<pid_t> Cluster::worker_pids() const {
  std::vector<pid_t> pids;
  for (std::size_t i = nodes_.size(); i < supervisor_.size(); ++i) {
    pids.push_back(supervisor_.child(i).pid());
  }
  return pids;
}

}  // namespace wb
