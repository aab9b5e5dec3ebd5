#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/system/failures/cluster.h"
#include "tests/system/failures/failure_cells.h"

namespace wb::test {

/// How a call ended.
struct Ended {
  nlohmann::json answer;
  /// The last thing that the test did; nothing: it ended before the fault.
  std::optional<std::chrono::milliseconds> after;
};

/// One cell of the failure table, on a cluster whose last version was good.
class CellRun {
 public:
  /// `version` is the last one that was published, and is counted on.
  CellRun(Cluster& cluster, const Cell& cell, std::uint64_t& version)
      : cluster_(cluster), cell_(cell), version_(version) {}

  /// Brings the cluster to the stage, does the fault, waits for all that follows, replaces what was
  /// lost and delivers the next version. What was not as the cell says: "" or a line a fault.
  std::string Run();
  /// What was seen, as a row of a table.
  std::string Row() const;

 private:
  using Clock = std::chrono::steady_clock;

  // What leads to the stage (cell_stages.cc).
  void Reach();
  void ReachRegistering();
  void ReachInUpdate();
  void AwaitOffered();
  std::string Deadline(const std::string& worker) const;

  // The fault and what follows.
  void DoFault();
  void AwaitFailures();
  void AwaitLeaderLost();
  void LetGo();
  void ReceiveLate();
  void Continue();
  void AwaitEnd(const std::string& worker);
  void Recover();
  void ResolveDoubts();
  void DeliverNext();

  const Ending& Expected(const std::string& worker) const;
  bool Expects(const std::string& worker, const std::string& code) const;
  /// Its answer can only come once the victim goes on.
  bool StandsStill(const std::string& worker) const;
  void Tell(const std::string& worker, const std::string& command);
  void Collect();
  void CheckEnding(const std::string& worker);
  void CheckMemory(const std::string& worker);
  void CheckQuiet();
  void Blame(const std::string& what) { faults_ += what + "\n"; }

  Cluster& cluster_;
  const Cell& cell_;
  std::uint64_t& version_;
  std::vector<std::string> ordered_;  // nodes that hold something
  std::map<std::string, bool> in_call_;
  std::map<std::string, Ended> ended_;
  std::optional<Clock::time_point> acted_;  // when the test did the last thing: the fault, or later
  std::string faults_;
  std::string next_ = "not tried";
};

}  // namespace wb::test
