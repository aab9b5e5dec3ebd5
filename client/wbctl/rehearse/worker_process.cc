#include "client/wbctl/rehearse/worker_process.h"

#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <poll.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "client/wbctl/process/child.h"
#include "client/wbctl/process/control_channel.h"
#include "client/wbctl/rehearse/messages.h"
#include "client/wbctl/rehearse/rehearsal_worker.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.good() || in.eof()) return text;
  return absl::NotFoundError(absl::StrCat("cannot read ", path.string()));
}

/// The next message, or an error when the channel is closed or silent for `patience`.
absl::StatusOr<std::string> AwaitMessage(const ControlChannel& channel,
                                         std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    WB_ASSIGN_OR_RETURN(std::string message, channel.Receive());
    if (!message.empty()) return message;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("the rehearsal gave no order for ", patience.count(), " ms"));
    }
    pollfd readable{channel.fd(), POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
  }
}

absl::Status Answer(const ControlChannel& channel, StepReport report, const absl::Status& status) {
  if (!status.ok()) {
    report.error = std::string(status.message());
    std::cerr << StepName(report.step) << " failed: " << report.error << std::endl;
  }
  return channel.Send(ToJson(report));
}

absl::StatusOr<std::unique_ptr<RehearsalWorker>> JoinedWorker(const fs::path& spec_path) {
  WB_ASSIGN_OR_RETURN(const std::string text, ReadFile(spec_path));
  WB_ASSIGN_OR_RETURN(WorkerSpec spec, WorkerSpecFromJson(text));
  WB_ASSIGN_OR_RETURN(std::string layout, ReadFile(spec.layout));
  WB_ASSIGN_OR_RETURN(std::unique_ptr<RehearsalWorker> worker,
                      RehearsalWorker::Create(std::move(spec), std::move(layout)));
  WB_RETURN_IF_ERROR(worker->Join());
  return worker;
}

absl::Status Serve(const ControlChannel& channel, const fs::path& spec_path) {
  const auto worker = JoinedWorker(spec_path);
  WB_RETURN_IF_ERROR(
      Answer(channel, {.step = Step::kJoin, .error = "", .check = {}}, worker.status()));
  Order order;
  while (worker.ok()) {
    // Others may take one step and their deadline before it is our turn again.
    WB_ASSIGN_OR_RETURN(const std::string message, AwaitMessage(channel, 2 * (*worker)->timeout()));
    WB_ASSIGN_OR_RETURN(order, OrderFromJson(message));
    if (order.step == Step::kLeave) break;
    StepReport report{.step = order.step, .error = "", .check = {}};
    const absl::Status taken = (*worker)->Take(order, report.check);
    WB_RETURN_IF_ERROR(Answer(channel, std::move(report), taken));
  }
  return worker.status();
}

}  // namespace

ExitCode RunWorkerProcess(const fs::path& spec) {
  const ControlChannel channel{FdHandle(kControlFd)};
  const absl::Status status = Serve(channel, spec);
  if (status.ok()) return ExitCode::kDone;
  std::cerr << status.message() << std::endl;
  return ExitCode::kFailed;
}

}  // namespace wb
