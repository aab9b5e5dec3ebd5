#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "client/wbctl/process/control_channel.h"
#include "tests/system/daemon_process.h"

namespace wb::test {

/// A system_held_daemon, with its orders (held_daemon.cc). What does not come in time is thrown.
class HeldProcess {
 public:
  explicit HeldProcess(DaemonProcess::Options options);

  /// Starts it and waits until it is ready; again after its end.
  void Start();
  /// Returns when the order is in force.
  void Order(const std::string& order);
  /// Waits until it has said that it holds a message of this kind, or a payload.
  void AwaitReached(const std::string& what);

  DaemonProcess& process() { return process_; }
  const DaemonProcess& process() const { return process_; }

 private:
  void AwaitText(const std::string& text);

  DaemonProcess process_;
  std::optional<ControlChannel> channel_;
};

}  // namespace wb::test
