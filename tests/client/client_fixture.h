#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "client/include/weightbridge/client.h"
#include "tests/support/fake_daemon.h"
#include "tests/support/time_slack.h"

namespace wb::test {

/// As engine0/1 of 2 would join.
inline weightbridge::JoinOptions OptionsFor(const std::string& socket) {
  weightbridge::JoinOptions options;
  options.socket = socket;
  options.job = "run1";
  options.group = "engine0";
  options.rank = 1;
  options.world_size = 2;
  options.incarnation = 42;
  options.timeout = std::chrono::milliseconds(2000);
  return options;
}

/// One FP32 tensor w [2, 4], of which this worker holds row 1 in buffer "w" (16 bytes).
inline weightbridge::Layout RowLayout(const weightbridge::SharedBuffer& memory) {
  weightbridge::Layout layout;
  weightbridge::Param param("w", {1, 4});
  param.AddPiece({"w", {1, 0}, {2, 4}, {0, 0}, {}});
  const bool whole = layout.AddTensor("w", weightbridge::Dtype::kFp32, {2, 4}).ok() &&
                     layout.AddParam(param).ok() && layout.SetBuffer("w", memory).ok();
  if (!whole) std::abort();
  return layout;
}

inline weightbridge::Layout RowLayout() {
  return RowLayout(*weightbridge::SharedBuffer::Create(16));
}

inline weightbridge::Result<weightbridge::Rollout> JoinRollout(const FakeDaemon& daemon) {
  return weightbridge::Rollout::Join(OptionsFor(daemon.socket()), RowLayout());
}

inline weightbridge::Result<weightbridge::Trainer> JoinTrainer(const FakeDaemon& daemon) {
  weightbridge::JoinOptions options = OptionsFor(daemon.socket());
  options.group = "policy";
  return weightbridge::Trainer::Join(options, RowLayout());
}

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Whether `done` comes true within a few seconds: for what a script does on its own thread.
template <typename Done>
bool Soon(Done done) {
  const auto until = std::chrono::steady_clock::now() + Slack(std::chrono::seconds(5));
  while (!done()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// How long something took.
class Stopwatch {
 public:
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 start_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace wb::test
