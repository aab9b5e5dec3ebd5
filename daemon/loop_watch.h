#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "planner/base/mutex.h"

namespace wb {

// The loops of a daemon, by their threads.
inline constexpr const char* kControlLoop = "control";
inline constexpr const char* kLeaderLoop = "leader";
inline constexpr const char* kMoverLoop = "mover";

/// Whether the loops of the daemon turn, seen by a thread of its own: each loop is asked for a sign
/// of life every quarter of `limit`, and one that gives none for three quarters counts as stuck, so
/// that a loop that stops is known before `limit` has passed. Thread-safe.
class LoopWatch {
 public:
  using Clock = std::chrono::steady_clock;
  struct Loop {
    std::string name;  // for people
    std::function<void(std::function<void()>)> post;
  };
  struct Stuck {
    std::string name;
    Clock::duration since;  // it gave the last sign of life
    /// "the mover thread has not turned for 7.2 s".
    std::string ToString() const;
  };

  /// The loops outlive the watch. `changed` is called on its thread when a loop has become stuck,
  /// or turns again, with all that are stuck.
  LoopWatch(std::vector<Loop> loops,
            std::chrono::milliseconds limit,
            std::function<void(const std::vector<Stuck>&)> changed);
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;
  ~LoopWatch();

  std::vector<Stuck> StuckLoops() const;
  bool IsStuck(const std::string& name) const;

 private:
  struct Pulse;
  void Run();
  bool AwaitNextLook();

  const std::chrono::milliseconds limit_;
  const std::function<void(const std::vector<Stuck>&)> changed_;
  // Shared with the questions, which a loop that is stuck may answer, or drop, late.
  const std::vector<std::shared_ptr<Pulse>> pulses_;
  Mutex mu_;
  CondVar changed_end_;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace wb
