#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "client/wbctl/process/child.h"
#include "planner/base/fd_handle.h"

namespace wb::test {

/// A real weightbridged with a run directory of its own below `folder`.
class DaemonProcess {
 public:
  struct Options {
    std::string folder;  // of the test; one daemon a node name in it
    std::string node;
    std::string leader;        // "listen: ..." or "address: ...", as the configuration has it
    std::string more;          // further lines of the configuration
    std::string run_dir = {};  // default: the node's own below `folder`
    std::vector<std::string> environment = {};  // "NAME=VALUE", over ours
    std::string interface = "lo";               // data.interface
    std::string binary = {};                    // default: this build's
    std::vector<std::string> prefix = {};       // a command that becomes it: setpriv, ip netns exec
    std::string transports = "tcp";             // data.transports, comma-separated
  };

  explicit DaemonProcess(Options options);
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  /// Starts it; again after its end. False when it could not be run. `control_fd` becomes its
  /// kControlFd, for a binary that wants one.
  bool Start(int control_fd = -1);
  /// Whether it says within `bound` that it is ready.
  bool Ready(std::chrono::milliseconds bound = std::chrono::seconds(10));
  /// Whether it tells the service manager NAME=VALUE within `bound`.
  bool Says(const std::string& name,
            const std::string& value,
            std::chrono::milliseconds bound = std::chrono::seconds(10));
  /// The last VALUE that it told for NAME and that has been read; "" when there is none.
  std::string Said(const std::string& name) const;
  /// How it ended, within `bound`; "runs" when it does not.
  std::string Ends(std::chrono::milliseconds bound = std::chrono::seconds(10));
  void Signal(int signal) { child_->Signal(signal); }
  pid_t pid() const { return child_->pid(); }

  std::string run_dir() const {
    return options_.run_dir.empty() ? options_.folder + "/" + options_.node : options_.run_dir;
  }
  std::string worker_socket() const { return run_dir() + "/worker.sock"; }
  std::string control() const { return "unix:" + run_dir() + "/control.sock"; }
  const std::string& config() const { return config_; }  // its path
  const std::string& log() const { return log_; }        // its path
  /// All that it has logged since it was started.
  std::string Log() const;

 private:
  const Options options_;
  const std::string config_;
  const std::string log_;
  std::string notify_path_;
  FdHandle notify_;
  std::string said_;
  std::optional<Child> child_;
};

/// Options::leader of the daemon that leads, at a port the kernel chooses.
inline constexpr const char* kListen = "listen: '127.0.0.1:0'";
/// Options::leader of a daemon that is led by this one, which is ready.
[[nodiscard]] std::string AddressOf(const DaemonProcess& leader);

/// What a program prints and how it ends, run to its end.
struct Finished {
  int code = -1;  // exit code; -1: killed, or could not be run
  std::string output;
};
[[nodiscard]] Finished RunProgram(const std::string& folder,
                                  const std::vector<std::string>& argv,
                                  std::chrono::milliseconds bound = std::chrono::seconds(20));

/// A program of this build.
[[nodiscard]] std::string BinaryOf(const std::string& name);

}  // namespace wb::test
