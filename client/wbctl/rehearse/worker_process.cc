#include "client/wbctl/rehearse/worker_process.h"

#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <poll.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "client/include/weightbridge/client.h"
#include "client/wbctl/contents/checkpoint.h"
#include "client/wbctl/contents/checkpoint_contents.h"
#include "client/wbctl/contents/checkpoint_copy.h"
#include "client/wbctl/contents/npy.h"
#include "client/wbctl/contents/worker_memory.h"
#include "client/wbctl/process/child.h"
#include "client/wbctl/process/control_channel.h"
#include "client/wbctl/rehearse/messages.h"
#include "planner/base/status_macros.h"
#include "proto/convert.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

// What bytes outside all pieces hold: a value a trainer's padding must never bring to a rollout,
// and the sentinel that a rollout's must keep.
constexpr std::byte kTrainerPadding{0x99};
constexpr std::byte kRolloutSentinel{0xA5};

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.good() || in.eof()) return text;
  return absl::NotFoundError(absl::StrCat("cannot read ", path.string()));
}

absl::Status ToStatus(const weightbridge::Error& error) {
  return {static_cast<absl::StatusCode>(error.code), error.ToString()};
}

/// Tensors that share the storage of another hold what that one holds.
class TiedContents final : public Contents {
 public:
  TiedContents(const Contents& contents, const std::map<std::string, std::string>& ties)
      : contents_(contents), ties_(ties) {}
  void Write(const Tensor& tensor,
             std::uint64_t begin,
             std::uint64_t count,
             std::span<std::byte> out) const override {
    const auto tie = ties_.find(tensor.name);
    if (tie == ties_.end()) return contents_.Write(tensor, begin, count, out);
    Tensor target = tensor;
    target.name = tie->second;
    contents_.Write(target, begin, count, out);
  }

 private:
  const Contents& contents_;
  const std::map<std::string, std::string>& ties_;
};

/// The worker between its orders. Thread-compatible.
class RehearsalWorker {
 public:
  static absl::StatusOr<std::unique_ptr<RehearsalWorker>> Create(WorkerSpec spec);

  absl::Status Join();
  /// Takes a step; kCheck leaves what it found in `check`.
  absl::Status Take(const Order& order, CheckResult& check);
  std::chrono::milliseconds timeout() const { return std::chrono::milliseconds(spec_.timeout_ms); }

 private:
  RehearsalWorker(WorkerSpec spec, std::string layout_bytes, Registration registration)
      : spec_(std::move(spec)),
        layout_bytes_(std::move(layout_bytes)),
        registration_(std::move(registration)) {}
  absl::Status Allocate();
  bool trainer() const { return registration_.layout.role == Role::kTrainer; }
  weightbridge::Source source() const {
    return spec_.snapshot ? weightbridge::Source::kSnapshot : weightbridge::Source::kInPlace;
  }
  /// What the memory holds after the move of `version`.
  std::uint64_t VersionAfter(std::uint64_t version) const {
    return trainer() && spec_.snapshot ? version + 1 : version;
  }
  /// Calls `use` with what the elements hold in a version.
  void WithContents(std::uint64_t version, const std::function<void(const Contents&)>& use) const;

  absl::Status Prepare(std::uint64_t version);
  absl::Status Move(std::uint64_t version);
  absl::Status Publish(std::uint64_t version);
  absl::Status Dump(const fs::path& folder) const;
  absl::Status Export(const fs::path& copy) const;

  WorkerSpec spec_;
  std::string layout_bytes_;  // serialised weightbridge.v1.Layout
  Registration registration_;
  std::optional<Checkpoint> checkpoint_;
  std::vector<weightbridge::SharedBuffer> buffers_;
  std::optional<WorkerMemory> memory_;
  std::uint64_t filled_ = 0;  // the version that a trainer's memory holds
  // The sessions end before the memory goes.
  std::optional<weightbridge::Trainer> as_trainer_;
  std::optional<weightbridge::Rollout> as_rollout_;
};

absl::StatusOr<std::unique_ptr<RehearsalWorker>> RehearsalWorker::Create(WorkerSpec spec) {
  WB_ASSIGN_OR_RETURN(std::string bytes, ReadFile(spec.layout));
  v1::Layout wire;
  if (!wire.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(spec.layout, " is no layout"));
  }
  std::variant<Registration, Refusals> registration = RegistrationFromProto(wire);
  if (const auto* refusals = std::get_if<Refusals>(&registration)) return ToStatus(*refusals);
  std::unique_ptr<RehearsalWorker> worker(new RehearsalWorker(
      std::move(spec), std::move(bytes), std::move(std::get<Registration>(registration))));
  if (!worker->spec_.checkpoint.empty()) {
    std::variant<Checkpoint, Refusals> opened = Checkpoint::Open(worker->spec_.checkpoint);
    if (const auto* refusals = std::get_if<Refusals>(&opened)) return ToStatus(*refusals);
    worker->checkpoint_ = std::move(std::get<Checkpoint>(opened));
  }
  WB_RETURN_IF_ERROR(worker->Allocate());
  return worker;
}

absl::Status RehearsalWorker::Allocate() {
  std::vector<std::span<std::byte>> spans;
  for (const Buffer& buffer : registration_.layout.buffers) {
    weightbridge::Result<weightbridge::SharedBuffer> memory =
        weightbridge::SharedBuffer::Create(std::max<std::uint64_t>(buffer.bytes, 1));
    if (!memory.ok()) return ToStatus(memory.error());
    spans.emplace_back(static_cast<std::byte*>(memory->data()), buffer.bytes);
    buffers_.push_back(std::move(*memory));
  }
  memory_.emplace(registration_, std::move(spans), trainer() ? kTrainerPadding : kRolloutSentinel);
  return absl::OkStatus();
}

absl::Status RehearsalWorker::Join() {
  weightbridge::Result<weightbridge::Layout> layout =
      weightbridge::Layout::FromSerialized(layout_bytes_);
  if (!layout.ok()) return ToStatus(layout.error());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const weightbridge::Result<void> set =
        layout->SetBuffer(registration_.layout.buffers[i].name, buffers_[i]);
    if (!set.ok()) return ToStatus(set.error());
  }
  memory_->Blank();
  weightbridge::JoinOptions options;
  options.socket = spec_.socket;
  options.job = registration_.job;
  options.group = registration_.layout.name.group;
  options.rank = registration_.layout.name.rank;
  options.world_size = spec_.world_size;
  options.timeout = timeout();
  if (trainer()) {
    options.source = source();
    weightbridge::Result<weightbridge::Trainer> joined =
        weightbridge::Trainer::Join(options, *layout);
    if (!joined.ok()) return ToStatus(joined.error());
    as_trainer_ = std::move(*joined);
    return absl::OkStatus();
  }
  weightbridge::Result<weightbridge::Rollout> joined =
      weightbridge::Rollout::Join(options, *layout);
  if (!joined.ok()) return ToStatus(joined.error());
  as_rollout_ = std::move(*joined);
  return absl::OkStatus();
}

void RehearsalWorker::WithContents(std::uint64_t version,
                                   const std::function<void(const Contents&)>& use) const {
  const FillContents fill(spec_.fill, version);
  const std::optional<CheckpointContents> real =
      checkpoint_ ? std::optional<CheckpointContents>(*checkpoint_) : std::nullopt;
  const Contents& own = real ? static_cast<const Contents&>(*real) : fill;
  if (spec_.ties.empty()) return use(own);
  use(TiedContents(own, spec_.ties));
}

absl::Status RehearsalWorker::Prepare(std::uint64_t version) {
  if (!trainer()) {
    // It forgets the version before, so that bytes that did not come show.
    memory_->Blank();
    return absl::OkStatus();
  }
  if (std::exchange(filled_, version) == version) return absl::OkStatus();
  // Every byte changes, also where the contents of all versions are the same.
  memory_->Blank();
  CheckResult check;
  WithContents(version, [&](const Contents& contents) {
    memory_->Write(contents);
    if (memory_->pieces_share_bytes()) check = memory_->Check(contents);
  });
  if (check.mismatches > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("param ", check.first.front().param, " and another share bytes that tensor ",
                     check.first.front().tensor, " and another give different contents"));
  }
  if (spec_.flip) memory_->FlipFirstElement();
  return absl::OkStatus();
}

/// From a snapshot the memory is written as soon as it may be: what then arrives is checked.
absl::Status RehearsalWorker::Publish(std::uint64_t version) {
  weightbridge::PublishOptions options;
  options.label = absl::StrCat("rehearsal ", version);
  options.timeout = timeout();
  options.source = source();
  const auto published = as_trainer_->Publish(version, options);
  if (!published.ok()) return ToStatus(published.error());
  if (!spec_.snapshot) return absl::OkStatus();
  WB_RETURN_IF_ERROR(Prepare(version + 1));
  const auto over = as_trainer_->WaitPublished(version, timeout());
  return over.ok() ? absl::OkStatus() : ToStatus(over.error());
}

absl::Status RehearsalWorker::Move(std::uint64_t version) {
  if (trainer()) return Publish(version);
  const auto offered = as_rollout_->WaitForVersion(version, timeout());
  if (!offered.ok()) return ToStatus(offered.error());
  weightbridge::ReceiveOptions options;
  options.timeout = timeout();
  const auto received = as_rollout_->Receive(version, options);
  if (!received.ok()) return ToStatus(received.error());
  if (spec_.flip) memory_->FlipFirstElement();
  return absl::OkStatus();
}

absl::Status RehearsalWorker::Dump(const fs::path& folder) const {
  if (trainer()) return absl::OkStatus();
  const Layout& layout = registration_.layout;
  for (const Param& param : layout.params) {
    WB_RETURN_IF_ERROR(WriteNpy(folder / NpyFileName(layout.name, param.name), param,
                                memory_->buffer(param.buffer)));
  }
  return absl::OkStatus();
}

absl::Status RehearsalWorker::Export(const fs::path& copy) const {
  WB_ASSIGN_OR_RETURN(CheckpointCopyWriter writer, CheckpointCopyWriter::Open(*checkpoint_, copy));
  absl::Status status;
  memory_->Read([&](const Piece& piece, std::uint64_t begin, std::span<const std::byte> bytes) {
    if (!status.ok()) return;
    status = writer.Write(registration_.tensors[piece.tensor.value()], begin, bytes);
  });
  return status;
}

absl::Status RehearsalWorker::Take(const Order& order, CheckResult& check) {
  switch (order.step) {
    case Step::kPrepare:
      return Prepare(order.version);
    case Step::kMove:
      return Move(order.version);
    case Step::kCheck:
      WithContents(VersionAfter(order.version),
                   [&](const Contents& contents) { check = memory_->Check(contents); });
      return absl::OkStatus();
    case Step::kDump:
      return Dump(order.paths.at(0));
    case Step::kExport:
      return Export(order.paths.at(0));
    case Step::kJoin:
    case Step::kLeave:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat("no step to order: ", StepName(order.step)));
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
  WB_ASSIGN_OR_RETURN(std::unique_ptr<RehearsalWorker> worker,
                      RehearsalWorker::Create(std::move(spec)));
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
