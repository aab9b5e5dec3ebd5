#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "planner/base/fd_handle.h"

namespace wb {

/// How a child process is started.
struct ChildOptions {
  std::string name;                      // for people: "worker engine0/1"
  std::vector<std::string> argv;         // argv[0] is the program's path
  std::vector<std::string> environment;  // "NAME=VALUE", over ours; "NAME" removes it
  std::filesystem::path log;             // takes stdout and stderr; created
  int control_fd = -1;                   // becomes the child's kControlFd; -1: none
};

/// The descriptor at which a child finds its end of the control channel.
inline constexpr int kControlFd = 3;

/// A child process in a process group of its own. It ends with this object, by SIGKILL if it is
/// still there, and with this process (PR_SET_PDEATHSIG), however that ends. Start from the main
/// thread, before any other thread exists: the signal follows the thread that started it.
/// Move-only.
class Child {
 public:
  /// Returns when the program runs; an error names the program and why it could not be run.
  static absl::StatusOr<Child> Start(const ChildOptions& options);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  const std::filesystem::path& log() const { return log_; }
  /// Readable when the child has ended.
  int pidfd() const { return pidfd_.get(); }
  /// Sends a signal to the child's process group. No effect when it has ended.
  void Signal(int signal) const;
  /// How it ended: "exited with code 1", "was killed by signal 9 (Killed)"; "" while it runs.
  /// Reaps it.
  std::string Ended();
  /// Whether it has ended by exit code 0. Only after Ended() said something.
  bool succeeded() const { return wait_status_ == 0; }

 private:
  Child() = default;
  void Kill();

  std::string name_;
  std::filesystem::path log_;
  pid_t pid_ = -1;
  FdHandle pidfd_;
  std::optional<int> wait_status_;
};

/// The last `lines` lines of a file, each after `indent`; "" when it is empty or not there. Reads
/// at most its last 64 KiB.
[[nodiscard]] std::string Tail(const std::filesystem::path& file, int lines, const char* indent);

}  // namespace wb
