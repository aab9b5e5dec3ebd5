#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/support/temp_folder.h"
#include "tests/system/failures/held_process.h"
#include "tests/system/failures/worker_process.h"

namespace wb::test {

/// Four daemons and their workers: "lead" leads and has none, n0 has the trainer policy/0, n1
/// engine0/0, n2 engine0/1 and engine1/0, and policy/1 where there are two trainers. All in
/// processes; daemons are held ones. What does not come about in time is thrown.
class Cluster {
 public:
  struct Options {
    std::int64_t bytes = 0;  // of the tensor that moves
    std::string more = {};   // of each daemon's configuration
    std::string transports = "tcp";
    int trainers = 1;  // or 2
  };
  /// All run, and all workers have joined.
  explicit Cluster(Options options);

  HeldProcess& daemon(const std::string& node) { return *daemons_.at(node); }
  WorkerProcess& worker(const std::string& name) { return workers_.at(name); }
  std::map<std::string, WorkerProcess>& workers() { return workers_; }

  /// Starts a daemon that has ended; a leader at the address of the one before.
  void Restart(const std::string& node);
  /// Stops a process, and returns when none of its threads runs any more.
  static void Stop(pid_t process);
  /// Waits until a daemon has lost its leader, or has one.
  void AwaitLeader(const std::string& node, bool connected);
  /// Starts a worker that has ended, as another process, and has it join.
  void Replace(const std::string& worker);
  /// Whether the leader knows all rollouts.
  bool KnowsRollouts();
  /// Has every rollout take a version and every trainer publish it; returns when they have been
  /// told.
  void Begin(std::uint64_t version, std::chrono::milliseconds timeout);
  /// Publishes a version, which every rollout receives: "" or a line for each that did not, or that
  /// holds other bytes than it says.
  std::string Deliver(std::uint64_t version);
  /// Waits until a delivery is in a state ("prepared").
  void AwaitDelivery(std::uint64_t version, const std::string& group, const std::string& state);

  const std::string& transports() const { return options_.transports; }

 private:
  void AddDaemon(const std::string& node, const std::string& leader);
  std::size_t rollouts() const;

  const Options options_;
  const TempFolder folder_;
  std::string leader_;  // its address
  std::map<std::string, std::unique_ptr<HeldProcess>> daemons_;
  std::map<std::string, WorkerProcess> workers_;
};

}  // namespace wb::test
