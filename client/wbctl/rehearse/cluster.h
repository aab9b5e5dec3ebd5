#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/wbctl/process/supervisor.h"
#include "client/wbctl/rehearse/messages.h"
#include "proto/convert.h"

namespace wb {

struct ClusterOptions {
  std::filesystem::path daemon_binary;
  std::filesystem::path worker_binary;               // this program
  std::filesystem::path run_directory;               // private, with a short path
  std::string flip;                                  // the worker that spoils a bit; empty: none
  std::string transport = "tcp";                     // as the daemons' data.transports
  std::chrono::milliseconds timeout{0};              // of any one step
  std::function<void(const std::string&)> progress;  // a line a process; may be empty
};

/// The processes of a rehearsal on this machine: a daemon for each node of the job, the first of
/// which leads, and a worker process for each layout. All of them end with it.
///
/// A process that ends, a worker that reports an error, one that is late and a signal to us all end
/// a call with an error that names the process and quotes the end of its log. After an error only
/// the destructor may be called. Start from the main thread, before any other exists.
class Cluster {
 public:
  /// Starts the daemons and then the workers; returns when every worker has joined. `common` is
  /// what all workers' specs share; `signals` outlives the cluster.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(const LoadedJob& job,
                                                        const ClusterOptions& options,
                                                        const WorkerSpec& common,
                                                        const StopSignals& signals);

  /// All workers take a step, or with `only_group` those of one group; one report for each, in the
  /// job's order.
  absl::StatusOr<std::vector<StepReport>> Take(const Order& order,
                                               const std::string& only_group = "");
  /// The workers leave, the daemons drain; an error names who did not end well.
  absl::Status Leave();

  /// The cause of an error that shows elsewhere: a process that has ended, or a signal, if one
  /// shows within a second; else `status` itself.
  absl::Status Explain(const absl::Status& status);

  /// The leader's ops door, as gRPC names it.
  std::string leader_target() const;
  std::vector<pid_t> daemon_pids() const;
  std::vector<pid_t> worker_pids() const;

 private:
  Cluster(const LoadedJob& job, ClusterOptions options, Supervisor supervisor);
  absl::Status StartDaemons();
  absl::Status StartDaemon(std::size_t node, const std::string& leader_address);
  std::size_t WorkersOn(const std::string& node) const;
  absl::StatusOr<std::string> AwaitReady(std::size_t first, std::size_t count);
  absl::Status StartWorkers(const WorkerSpec& common);
  absl::Status StartWorker(std::size_t worker, WorkerSpec spec);
  absl::StatusOr<std::vector<StepReport>> AwaitReports(const std::vector<std::size_t>& workers,
                                                       Step step,
                                                       const std::string& doing);
  /// A worker's report of that step, or the error it tells.
  absl::StatusOr<StepReport> ReadReport(const SupervisorEvent& event,
                                        Step step,
                                        const std::string& doing) const;
  absl::Status AwaitEnds(const std::vector<std::size_t>& children, const std::string& doing);
  /// The error that an event is, whatever is waited for.
  absl::Status Failure(const SupervisorEvent& event, const std::string& doing);
  absl::Status Late(const std::vector<std::size_t>& children, const std::string& doing) const;
  std::string Log(std::size_t child) const;
  std::string Describe(std::size_t child) const;

  const LoadedJob& job_;
  ClusterOptions options_;
  std::vector<std::string> nodes_;              // daemon i serves nodes_[i]
  std::map<std::string, std::size_t> node_of_;  // its index
  // Children 0..nodes_.size()-1 are the daemons, then the workers in the job's order.
  Supervisor supervisor_;
};

}  // namespace wb
