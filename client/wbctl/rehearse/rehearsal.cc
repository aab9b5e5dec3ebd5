#include "client/wbctl/rehearse/rehearsal.h"

#include <climits>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/wbctl/contents/checkpoint_copy.h"
#include "client/wbctl/contents/npy.h"
#include "client/wbctl/contents/same_storage.h"
#include "client/wbctl/process/stop_signals.h"
#include "client/wbctl/rehearse/cluster.h"
#include "client/wbctl/rehearse/leader_counters.h"
#include "client/wbctl/rehearse/run_directory.h"
#include "planner/base/checked_math.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kAskTimeout{10'000};
constexpr std::size_t kMaxDifferences = 20;

/// Memory that this machine can still give, in bytes, as the kernel estimates it.
std::optional<std::uint64_t> AvailableMemory() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  std::string unit;
  while (in >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    std::getline(in, unit);
  }
  return std::nullopt;
}

absl::StatusOr<std::uint64_t> BufferBytes(const Layout& layout) {
  std::uint64_t bytes = 0;
  for (const Buffer& buffer : layout.buffers) {
    WB_ASSIGN_OR_RETURN(bytes, CheckedAdd(bytes, buffer.bytes));
  }
  return bytes;
}

/// All buffers of all workers must fit this machine, and their snapshots: better said now than by
/// the kernel's killer.
absl::Status CheckMemory(const Job& job, bool snapshot) {
  std::uint64_t bytes = 0;
  for (const Layout& layout : job.layouts) {
    WB_ASSIGN_OR_RETURN(const std::uint64_t more, BufferBytes(layout));
    WB_ASSIGN_OR_RETURN(bytes, CheckedAdd(bytes, more));
    if (!snapshot || layout.role != Role::kTrainer) continue;
    WB_ASSIGN_OR_RETURN(bytes, CheckedAdd(bytes, more));
  }
  const std::optional<std::uint64_t> available = AvailableMemory();
  if (!available || bytes <= *available) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the workers' buffers", snapshot ? " and snapshots" : "", " have ", bytes,
                   " bytes, this machine has ", *available, " available"));
}

/// Each param needs a file name of its own, of at most NAME_MAX bytes; `owners` has those so far.
absl::Status CheckDumpName(const WorkerName& worker,
                           const Param& param,
                           std::map<std::string, std::string>& owners) {
  const std::string owner = absl::StrCat("param ", param.name, " of ", worker.ToString());
  const std::string file = NpyFileName(worker, param.name);
  if (file.size() > NAME_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("--dump: the file name of ", owner, " has ",
                                                   file.size(), " bytes, want at most ", NAME_MAX));
  }
  const auto [other, is_new] = owners.emplace(file, owner);
  if (is_new) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--dump: ", other->second, " and ", owner, " would both be ", file));
}

absl::Status CheckDumpNames(const Job& job) {
  std::map<std::string, std::string> owners;
  absl::Status checked;
  for (const Layout& layout : job.layouts) {
    if (layout.role != Role::kRollout) continue;
    for (const Param& param : layout.params) {
      checked.Update(CheckDumpName(layout.name, param, owners));
    }
  }
  return checked;
}

absl::Status MakeDumpFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot make the folder ", folder.string(), ": ", error.message()));
}

/// What is to be written in the end can be: known before a process starts.
absl::Status PrepareOutputs(const RehearsalInput& input, const RehearsalOptions& options) {
  if (!options.dump.empty()) {
    WB_RETURN_IF_ERROR(CheckDumpNames(input.job.job));
    WB_RETURN_IF_ERROR(MakeDumpFolder(options.dump));
  }
  if (input.checkpoint == nullptr || options.export_to.empty()) return absl::OkStatus();
  return CheckpointCopy::CheckOut(*input.checkpoint, fs::absolute(options.export_to));
}

/// The spec that all workers share.
WorkerSpec CommonSpec(const Job& job, const RehearsalOptions& options) {
  WorkerSpec spec{.layout = "", .socket = "", .checkpoint = "", .ties = {}};
  spec.timeout_ms = options.timeout.count();
  spec.fill = options.fill;
  if (!options.checkpoint.empty()) spec.checkpoint = fs::absolute(options.checkpoint).string();
  spec.ties = SameStorageNames(job);
  spec.snapshot = options.snapshot;
  return spec;
}

/// The leader's counters of a version.
void AddCounters(const ::weightbridge::v1::VersionStatus& known, VersionResult& version) {
  version.average_stall_ms = known.average_stall_ms();
  version.end_to_end_ms = known.end_to_end_ms();
  version.bound_bytes = known.bound_bytes();
  for (const ::weightbridge::v1::DeliveryStatus& delivery : known.deliveries()) {
    version.bytes_planned += delivery.bytes_planned();
    for (const auto& [path, bytes] : delivery.bytes_by_path()) {
      version.bytes_by_path[path] += bytes;
    }
  }
}

/// Adds what the workers' checks have found.
void AddChecks(const Job& job,
               const std::vector<StepReport>& reports,
               VersionResult& version,
               RehearsalResult& result) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const CheckResult& check = reports[i].check;
    const Layout& layout = job.layouts[i];
    version.verified_hole_bytes += check.hole_bytes;
    (layout.role == Role::kRollout ? version.verified_bytes : version.verified_source_bytes) +=
        check.element_bytes;
    if (check.mismatches == 0) continue;
    result.mismatches.push_back(
        {layout.name.ToString(), version.version, check.mismatches, check.first});
  }
}

/// One version: filled, moved, counted, checked.
absl::StatusOr<VersionResult> RunVersion(Cluster& cluster,
                                         const RehearsalInput& input,
                                         LeaderCounters& leader,
                                         std::uint64_t number,
                                         RehearsalResult& result) {
  const Job& job = input.job.job;
  VersionResult version{.version = number, .bytes_by_path = {}, .daemons = {}};
  for (const Step step : {Step::kPrepare, Step::kMove}) {
    const Order order{.step = step, .version = number, .paths = {}};
    WB_RETURN_IF_ERROR(cluster.Take(order).status());
  }
  const auto known = leader.Ask(job.name, number, kAskTimeout);
  if (!known.ok()) return cluster.Explain(known.status());
  AddCounters(*known, version);
  if (version.bytes_planned != input.plan.bytes) {
    return absl::InternalError(absl::StrCat("the leader planned ", version.bytes_planned,
                                            " bytes for the same layouts, this program ",
                                            input.plan.bytes));
  }
  WB_ASSIGN_OR_RETURN(const std::vector<StepReport> reports,
                      cluster.Take({.step = Step::kCheck, .version = number, .paths = {}}));
  AddChecks(job, reports, version, result);
  for (const pid_t pid : result.daemon_pids) {
    WB_ASSIGN_OR_RETURN(const Footprint footprint, FootprintOf(pid));
    version.daemons.push_back(footprint);
  }
  return version;
}

absl::Status RunVersions(Cluster& cluster,
                         const RehearsalInput& input,
                         const RehearsalOptions& options,
                         RehearsalResult& result) {
  LeaderCounters leader(cluster.leader_target());
  for (std::uint64_t i = 0; i < options.versions && !result.differs(); ++i) {
    WB_ASSIGN_OR_RETURN(VersionResult version,
                        RunVersion(cluster, input, leader, options.first_version + i, result));
    if (options.progress) options.progress(absl::StrCat("version ", version.version, " checked"));
    result.versions.push_back(std::move(version));
  }
  return absl::OkStatus();
}

/// The first rollout group, by name.
std::string FirstEngine(const Job& job) {
  for (const Layout& layout : job.layouts) {
    if (layout.role == Role::kRollout) return layout.name.group;
  }
  return "";
}

/// Gathers the checkpoint from one engine; what every other engine holds has been compared with
/// it element by element.
absl::Status Export(Cluster& cluster,
                    const Job& job,
                    const Checkpoint& checkpoint,
                    const fs::path& out,
                    RehearsalResult& result) {
  WB_ASSIGN_OR_RETURN(CheckpointCopy copy, CheckpointCopy::Create(checkpoint, fs::absolute(out)));
  WB_RETURN_IF_ERROR(
      cluster
          .Take({.step = Step::kExport, .version = 0, .paths = {copy.path().string()}},
                FirstEngine(job))
          .status());
  WB_ASSIGN_OR_RETURN(result.export_differences, copy.Differences(kMaxDifferences));
  WB_RETURN_IF_ERROR(copy.Commit());
  result.exported = true;
  return absl::OkStatus();
}

absl::Status RunSteps(Cluster& cluster,
                      const RehearsalInput& input,
                      const RehearsalOptions& options,
                      RehearsalResult& result) {
  result.source = options.snapshot ? "snapshot" : "in_place";
  result.daemon_pids = cluster.daemon_pids();
  result.worker_pids = cluster.worker_pids();
  WB_RETURN_IF_ERROR(RunVersions(cluster, input, options, result));
  if (!options.dump.empty()) {
    const std::string folder = fs::absolute(options.dump).string();
    WB_RETURN_IF_ERROR(
        cluster.Take({.step = Step::kDump, .version = 0, .paths = {folder}}).status());
  }
  if (input.checkpoint != nullptr && !options.export_to.empty()) {
    WB_RETURN_IF_ERROR(
        Export(cluster, input.job.job, *input.checkpoint, options.export_to, result));
  }
  return cluster.Leave();
}

}  // namespace

absl::Status Rehearse(const RehearsalInput& input,
                      const RehearsalOptions& options,
                      RehearsalResult& result) {
  WB_RETURN_IF_ERROR(CheckMemory(input.job.job, options.snapshot));
  WB_RETURN_IF_ERROR(PrepareOutputs(input, options));
  // Declared in this order: the processes end first, then their folder goes, and only then may a
  // signal end this process.
  WB_ASSIGN_OR_RETURN(const StopSignals signals, StopSignals::Block());
  WB_ASSIGN_OR_RETURN(RunDirectory directory, RunDirectory::Create());
  if (options.keep) {
    directory.Keep();
    result.kept = directory.path();
  }
  const ClusterOptions cluster_options{.daemon_binary = options.daemon_binary,
                                       .worker_binary = options.worker_binary,
                                       .run_directory = directory.path(),
                                       .flip = options.flip,
                                       .transport = options.transport,
                                       .timeout = options.timeout,
                                       .progress = options.progress};
  WB_ASSIGN_OR_RETURN(
      std::unique_ptr<Cluster> cluster,
      Cluster::Start(input.job, cluster_options, CommonSpec(input.job.job, options), signals));
  return RunSteps(*cluster, input, options, result);
}

}  // namespace wb
