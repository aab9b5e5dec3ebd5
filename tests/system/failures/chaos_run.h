#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "client/wbctl/process/footprint.h"
#include "tests/system/failures/cluster.h"

namespace wb::test {

/// A cluster whose workers publish and receive without pause while processes are killed, stopped
/// and cut off at random, and replaced. In rounds: faults for some seconds, or one process that
/// stands still for half a minute, then a calm in which all must come to rights. The first thing
/// that is not as promised ends it.
class ChaosRun {
 public:
  /// `seed` says which faults come when; what the kernel makes of it differs from run to run.
  explicit ChaosRun(std::uint64_t seed);

  /// "" after `length`, or what was not as promised.
  std::string Run(std::chrono::seconds length);
  /// What it has done, in figures.
  std::string Summary() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Busy {
    Clock::time_point since;
    std::chrono::milliseconds stopped{0};  // of this time, how long the worker could not run
  };
  struct WorkerState {
    bool joined = false;
    std::optional<Busy> busy;
    Clock::time_point rests_until;  // after a call that failed
  };
  /// A process that is killed or stopped, until it is brought back.
  struct Down {
    bool killed = false;
    Clock::time_point since;
    Clock::time_point until;
  };

  void Round();
  void LongStop();
  void RunUntil(Clock::time_point until, bool faults);
  void Calm();
  void Step();
  void Drive(const std::string& name, bool calm);
  void Take(const std::string& name, const nlohmann::json& answer);
  void Inject();
  void Gap(const std::string& process);
  void Stop(const std::string& process, std::chrono::milliseconds length);
  void Signal(const std::string& process, int signal);
  std::string DrawProcess();
  void BringBack(const std::string& process);
  void BringBackAll();
  void CheckDaemons();
  void CheckFootprints();
  std::uint64_t Draw(std::uint64_t from, std::uint64_t to);

  std::mt19937_64 rng_;
  const std::set<std::string> shm_before_;
  Cluster cluster_;
  std::map<std::string, WorkerState> workers_;
  std::map<std::string, Down> down_;
  std::map<std::string, std::pair<pid_t, Footprint>> footprints_;  // of daemons, when first calm
  Footprint last_;                                                 // of n2, which is never killed
  std::uint64_t version_ = 0;
  std::map<std::string, std::uint64_t> received_;  // versions received well, by worker

  // Figures.
  std::map<std::string, std::uint64_t> faults_;
  std::uint64_t rounds_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t released_ = 0;  // of these, to all groups
  std::uint64_t verified_ = 0;
  std::int64_t longest_over_ms_ = 0;
  std::chrono::milliseconds longest_calm_{0};
};

}  // namespace wb::test
