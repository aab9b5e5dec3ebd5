#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "client/wbctl/process/child.h"
#include "tests/support/temp_folder.h"

namespace wb::test {

/// The layout files that come with the project.
[[nodiscard]] std::filesystem::path Example(const std::string& name);

/// What `wbctl` said and how it ended.
struct WbctlResult {
  int exit_code = -1;  // -1: killed by a signal
  std::string out;
  std::string err;
};

/// One run of wbctl as a process of its own, with a temporary folder as its XDG_RUNTIME_DIR and
/// TMPDIR, so that what it leaves behind can be seen. Killed when this ends.
class WbctlRun {
 public:
  explicit WbctlRun(const std::vector<std::string>& arguments);
  WbctlRun(const WbctlRun&) = delete;
  WbctlRun& operator=(const WbctlRun&) = delete;

  /// Waits for the end; fails the test when it does not come in `patience` times the slack.
  WbctlResult Finish(std::chrono::milliseconds patience);
  /// Waits until stderr holds `text`; fails the test when it ends or takes too long before.
  void AwaitErr(const std::string& text);
  /// The pid that stderr names after `name` as "NAME (pid N)".
  pid_t PidOf(const std::string& name) const;
  /// All pids that stderr names.
  std::vector<pid_t> Pids() const;
  pid_t pid() const { return child_->pid(); }
  /// What lies in its runtime folder now.
  std::vector<std::string> LeftBehind() const;

 private:
  std::string Err() const;
  // Destroyed bottom-up: the child before its folder.
  TempFolder folder_;
  std::optional<Child> child_;
};

/// A run to its end.
[[nodiscard]] WbctlResult Wbctl(const std::vector<std::string>& arguments,
                                std::chrono::milliseconds patience = std::chrono::seconds(60));

/// Whether no process of these pids runs any more, waited for at most two seconds times the slack.
[[nodiscard]] bool AllGone(const std::vector<pid_t>& pids);

}  // namespace wb::test
