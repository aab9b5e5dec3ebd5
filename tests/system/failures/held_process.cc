#include "tests/system/failures/held_process.h"

#include <stdexcept>
#include <utility>

#include <poll.h>

#include "absl/strings/str_cat.h"

#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

constexpr std::chrono::seconds kPatience{10};

DaemonProcess::Options Held(DaemonProcess::Options options) {
  options.binary = BinaryOf("system_held_daemon");
  return options;
}

}  // namespace

HeldProcess::HeldProcess(DaemonProcess::Options options) : process_(Held(std::move(options))) {}

void HeldProcess::Start() {
  auto pair = ControlChannel::CreatePair().value();
  channel_.emplace(std::move(pair.first));
  if (process_.Start(pair.second.fd()) && process_.Ready(kPatience)) return;
  throw std::runtime_error("the daemon does not start: " + process_.Log());
}

void HeldProcess::Order(const std::string& order) {
  const absl::Status sent = channel_->Send(order);
  if (!sent.ok()) throw std::runtime_error(absl::StrCat(order, ": ", sent.message()));
  AwaitText(order);
}

void HeldProcess::AwaitReached(const std::string& what) {
  AwaitText("reached " + what);
}

void HeldProcess::AwaitText(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(kPatience);
  std::string seen;
  while (seen != text) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waited{channel_->fd(), POLLIN, 0};
    const bool readable =
        left.count() > 0 && ::poll(&waited, 1, static_cast<int>(left.count())) > 0;
    absl::StatusOr<std::string> said = channel_->Receive();
    if (!readable || !said.ok()) {
      throw std::runtime_error(absl::StrCat("a held daemon does not say '", text, "' but '", seen,
                                            "':\n", process_.Log()));
    }
    seen = *std::move(said);
  }
}

}  // namespace wb::test
