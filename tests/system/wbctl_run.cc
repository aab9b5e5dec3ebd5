#include "tests/system/wbctl_run.h"

#include <csignal>
#include <cstdlib>
#include <regex>
#include <stdexcept>

#include <poll.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

namespace fs = std::filesystem;

/// For what cannot be waited for by a descriptor: another process's output or end.
template <typename Condition>
bool Eventually(std::chrono::milliseconds patience, const Condition& holds) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(patience);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

bool Runs(pid_t pid) {
  const std::string stat = ReadWholeFile("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] != 'Z';
}

}  // namespace

fs::path Example(const std::string& name) {
  return fs::path(WB_EXAMPLES) / name;
}

WbctlRun::WbctlRun(const std::vector<std::string>& arguments) {
  const std::string& folder = folder_.path();
  fs::create_directory(folder_.File("run"));
  // Two files, so that stdout can be read as JSON.
  std::vector<std::string> argv{"/bin/sh", "-c",
                                "exec \"$@\" >\"" + folder + "/out\" 2>\"" + folder + "/err\"",
                                "sh", WB_WBCTL};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  absl::StatusOr<Child> child = Child::Start(
      {.name = "wbctl",
       .argv = argv,
       .environment = {"XDG_RUNTIME_DIR=" + folder + "/run", "TMPDIR=" + folder + "/run"},
       .log = folder_.File("log")});
  if (!child.ok()) throw std::runtime_error(std::string(child.status().message()));
  child_ = *std::move(child);
}

std::string WbctlRun::Err() const {
  return ReadWholeFile(folder_.File("err"));
}

WbctlResult WbctlRun::Finish(std::chrono::milliseconds patience) {
  pollfd end{child_->pidfd(), POLLIN, 0};
  const int ended = ::poll(&end, 1, static_cast<int>(Slack(patience).count()));
  INFO(Err());
  REQUIRE(ended == 1);
  const std::string how = child_->Ended();
  WbctlResult result{.exit_code = -1, .out = ReadWholeFile(folder_.File("out")), .err = Err()};
  const std::string exited = "exited with code ";
  if (how.rfind(exited, 0) == 0) result.exit_code = std::stoi(how.substr(exited.size()));
  return result;
}

void WbctlRun::AwaitErr(const std::string& text) {
  const bool there = Eventually(std::chrono::seconds(60), [&] {
    return Err().find(text) != std::string::npos || !child_->Ended().empty();
  });
  INFO(Err());
  REQUIRE(there);
  REQUIRE(Err().find(text) != std::string::npos);
}

pid_t WbctlRun::PidOf(const std::string& name) const {
  const std::string err = Err();
  const std::string before = name + " (pid ";
  const std::size_t at = err.find(before);
  INFO(err);
  REQUIRE(at != std::string::npos);
  return std::stoi(err.substr(at + before.size()));
}

std::vector<pid_t> WbctlRun::Pids() const {
  const std::string err = Err();
  const std::regex named("\\(pid ([0-9]+)\\)\n");
  std::vector<pid_t> pids;
  for (std::sregex_iterator it(err.begin(), err.end(), named), end; it != end; ++it) {
    pids.push_back(std::stoi((*it)[1]));
  }
  return pids;
}

std::vector<std::string> WbctlRun::LeftBehind() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.File("run"))) {
    names.push_back(entry.path().filename());
  }
  return names;
}

WbctlResult Wbctl(const std::vector<std::string>& arguments, std::chrono::milliseconds patience) {
  WbctlRun run(arguments);
  WbctlResult result = run.Finish(patience);
  REQUIRE(run.LeftBehind().empty());
  return result;
}

bool AllGone(const std::vector<pid_t>& pids) {
  return Eventually(std::chrono::seconds(2), [&] {
    for (const pid_t pid : pids) {
      if (Runs(pid)) return false;
    }
    return true;
  });
}

}  // namespace wb::test
