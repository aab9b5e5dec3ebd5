#include "tests/system/daemon_talk.h"

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

template <typename Question>
bool Becomes(std::chrono::milliseconds bound, Question question) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(bound);
  while (!question()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

std::string Exited(int code) {
  return absl::StrCat("exited with code ", code);
}

nlohmann::json AskDaemon(const TempFolder& folder,
                         const std::string& command,
                         const DaemonProcess& daemon) {
  const Finished answer = RunProgram(
      folder.path(), {BinaryOf("wbctl"), command, "-o", "json", "--daemon", daemon.control()});
  CAPTURE(answer.output);
  REQUIRE(answer.code == 0);
  return nlohmann::json::parse(answer.output);
}

bool StatusBecomes(const TempFolder& folder,
                   const DaemonProcess& daemon,
                   const std::string& key,
                   const nlohmann::json& value,
                   std::chrono::milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(bound);
  while (AskDaemon(folder, "status", daemon).at(key) != value) {
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

bool WaitsShow(const TempFolder& folder,
               const DaemonProcess& daemon,
               const std::string& text,
               std::chrono::milliseconds bound) {
  return Becomes(bound, [&] {
    const nlohmann::json status = AskDaemon(folder, "status", daemon);
    return absl::StrContains(status.at("waits").dump(), text);
  });
}

bool LogShows(const DaemonProcess& daemon,
              const std::string& text,
              std::chrono::milliseconds bound) {
  return Becomes(bound, [&] { return absl::StrContains(daemon.Log(), text); });
}

}  // namespace wb::test
