#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "client/wbctl/process/child.h"
#include "client/wbctl/process/control_channel.h"

namespace wb::test {

/// A system_commanded_worker. Its answers come in the order of its commands.
class WorkerProcess {
 public:
  struct Options {
    std::string folder;  // for its log
    std::string role;    // "trainer", "rollout"
    std::string socket;  // of its daemon
    std::string group;
    int rank = 0;
    int world = 1;
    std::int64_t bytes = 0;  // of the tensor
  };
  explicit WorkerProcess(Options options);

  /// Starts it; again after its end, as another process.
  void Start();
  void Tell(const std::string& command);
  /// What it has answered, without waiting. {"code": "gone"} once, when it has ended.
  std::optional<nlohmann::json> Take();
  /// Tells it and waits for the answer; throws when that does not come within `bound`.
  nlohmann::json Ask(const std::string& command, std::chrono::milliseconds bound);
  nlohmann::json Await(std::chrono::milliseconds bound);
  /// The same, of the end of a command: passes over what a "take" says in between.
  nlohmann::json AwaitEnd(std::chrono::milliseconds bound);
  void Signal(int signal) const { child_->Signal(signal); }
  pid_t pid() const { return child_->pid(); }
  /// Readable when Take has something.
  int fd() const { return channel_->fd(); }
  std::string name() const;

 private:
  const Options options_;
  std::optional<ControlChannel> channel_;
  std::optional<Child> child_;
  bool gone_ = false;
};

}  // namespace wb::test
