#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "planner/base/fd_handle.h"

namespace wb::test {

/// Another process with a UCX fabric on lo: this test binary again, running the hidden test case of
/// peer_process.cc. Killed and reaped when this goes.
class PeerProcess {
 public:
  /// It lands whatever is sent to it. `transports` as UcxOptions has them.
  static PeerProcess Lander(const std::string& transports);
  /// It sends messages of `bytes` to `address`, four at a time, without end; each byte is 0x77.
  static PeerProcess Sender(const std::string& transports,
                            const std::string& address,
                            std::uint64_t bytes);

  /// A lander in a PID namespace of its own, with its /proc or with ours. Only where this process
  /// may make one.
  static PeerProcess LanderInOwnPids(const std::string& transports, bool own_proc);

  PeerProcess(PeerProcess&&) = default;
  PeerProcess& operator=(PeerProcess&&) = delete;
  ~PeerProcess();

  const std::string& address() const { return address_; }
  /// SIGKILL, SIGSTOP (returns once it stands still), SIGCONT.
  void Signal(int number) const;

 private:
  PeerProcess(FdHandle life, pid_t pid, std::string address);
  static PeerProcess Start(const std::string& role, std::vector<std::string> argv = {});

  FdHandle life_;  // the process ends when this is closed
  pid_t pid_ = -1;
  std::string address_;
};

}  // namespace wb::test
