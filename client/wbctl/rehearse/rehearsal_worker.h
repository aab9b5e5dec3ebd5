#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/include/weightbridge/client.h"
#include "client/wbctl/contents/checkpoint.h"
#include "client/wbctl/contents/worker_memory.h"
#include "client/wbctl/rehearse/messages.h"
#include "planner/model/registration.h"

namespace wb {

/// A worker between its orders: its memory, and its session with a daemon through the client
/// library, as any trainer or engine has one. Thread-compatible.
class RehearsalWorker {
 public:
  /// `layout` is a serialised weightbridge.v1.Layout; the spec's path of it is not looked at.
  static absl::StatusOr<std::unique_ptr<RehearsalWorker>> Create(WorkerSpec spec,
                                                                 std::string layout);

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
  absl::Status Dump(const std::filesystem::path& folder) const;
  absl::Status Export(const std::filesystem::path& copy) const;

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

}  // namespace wb
