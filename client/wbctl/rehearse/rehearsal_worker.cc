#include "client/wbctl/rehearse/rehearsal_worker.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "client/wbctl/contents/checkpoint_contents.h"
#include "client/wbctl/contents/checkpoint_copy.h"
#include "client/wbctl/contents/npy.h"
#include "planner/base/status_macros.h"
#include "proto/convert.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

// What bytes outside all pieces hold: a value a trainer's padding must never bring to a rollout,
// and the sentinel that a rollout's must keep.
constexpr std::byte kTrainerPadding{0x99};
constexpr std::byte kRolloutSentinel{0xA5};

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

}  // namespace

absl::StatusOr<std::unique_ptr<RehearsalWorker>> RehearsalWorker::Create(WorkerSpec spec,
                                                                         std::string layout) {
  v1::Layout wire;
  if (!wire.ParseFromString(layout)) {
    return absl::InvalidArgumentError("a worker's layout cannot be read");
  }
  std::variant<Registration, Refusals> registration = RegistrationFromProto(wire);
  if (const auto* refusals = std::get_if<Refusals>(&registration)) return ToStatus(*refusals);
  std::unique_ptr<RehearsalWorker> worker(new RehearsalWorker(
      std::move(spec), std::move(layout), std::move(std::get<Registration>(registration))));
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

}  // namespace wb
