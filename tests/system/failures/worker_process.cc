#include "tests/system/failures/worker_process.h"

#include <stdexcept>
#include <utility>

#include <poll.h>

#include "absl/strings/str_cat.h"

#include "tests/support/time_slack.h"
#include "tests/system/daemon_process.h"

namespace wb::test {

WorkerProcess::WorkerProcess(Options options) : options_(std::move(options)) {}

std::string WorkerProcess::name() const {
  return absl::StrCat(options_.group, "/", options_.rank);
}

void WorkerProcess::Start() {
  child_.reset();
  auto pair = ControlChannel::CreatePair().value();
  channel_.emplace(std::move(pair.first));
  gone_ = false;
  absl::StatusOr<Child> child = Child::Start(
      {.name = name(),
       .argv = {BinaryOf("system_commanded_worker"), options_.role, options_.socket, options_.group,
                absl::StrCat(options_.rank), absl::StrCat(options_.world),
                absl::StrCat(options_.bytes)},
       .environment = {},
       .log = absl::StrCat(options_.folder, "/", options_.group, "-", options_.rank, ".log"),
       .control_fd = pair.second.fd()});
  if (!child.ok()) throw std::runtime_error(std::string(child.status().message()));
  child_.emplace(*std::move(child));
}

void WorkerProcess::Tell(const std::string& command) {
  const absl::Status sent = channel_->Send(command);
  if (sent.ok()) return;
  throw std::runtime_error(absl::StrCat(name(), ": ", command, ": ", sent.message()));
}

std::optional<nlohmann::json> WorkerProcess::Take() {
  if (gone_) return std::nullopt;
  const absl::StatusOr<std::string> said = channel_->Receive();
  if (!said.ok()) {
    gone_ = true;
    return nlohmann::json{{"code", "gone"}};
  }
  if (said->empty()) return std::nullopt;
  return nlohmann::json::parse(*said);
}

nlohmann::json WorkerProcess::Ask(const std::string& command, std::chrono::milliseconds bound) {
  Tell(command);
  return Await(bound);
}

nlohmann::json WorkerProcess::Await(std::chrono::milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(bound);
  while (true) {
    if (std::optional<nlohmann::json> said = Take(); said.has_value()) return *std::move(said);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw std::runtime_error(name() + " does not answer");
    pollfd waited{channel_->fd(), POLLIN, 0};
    ::poll(&waited, 1, static_cast<int>(left.count()));
  }
}

nlohmann::json WorkerProcess::AwaitEnd(std::chrono::milliseconds bound) {
  nlohmann::json said = Await(bound);
  return said.value("call", "") == "offered" ? Await(bound) : said;
}

}  // namespace wb::test
