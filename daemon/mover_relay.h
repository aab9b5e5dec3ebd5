#pragma once

#include "absl/status/status.h"

#include "daemon/move/coordinator.h"
#include "daemon/move/mover.h"
#include "transport/loop/event_loop.h"

namespace wb {

/// Carries what the mover reports from its thread to the coordinator on the control loop.
/// Thread-safe once the coordinator is set.
class MoverRelay final : public MoverEvents {
 public:
  explicit MoverRelay(EventLoop& loop) : loop_(loop) {}
  /// Before the first attempt; the coordinator lives as long as the loop runs.
  void SetCoordinator(Coordinator* coordinator) { coordinator_ = coordinator; }

  void OnPrepared(AttemptId attempt) override {
    loop_.Post([this, attempt] { coordinator_->OnPrepared(attempt); });
  }
  void OnStaged(AttemptId attempt, const BytesByPath& bytes) override {
    loop_.Post([this, attempt, bytes] { coordinator_->OnStaged(attempt, bytes); });
  }
  void OnMeasured(AttemptId attempt, const AttemptTimes& times) override {
    loop_.Post([this, attempt, times] { coordinator_->OnMeasured(attempt, times); });
  }
  void OnFailed(AttemptId attempt, const absl::Status& status) override {
    loop_.Post([this, attempt, status] { coordinator_->OnFailed(attempt, status); });
  }
  void OnEnded(AttemptId attempt) override {
    loop_.Post([this, attempt] { coordinator_->OnEnded(attempt); });
  }
  void OnSnapshot(SnapshotId snapshot, const absl::Status& status) override {
    loop_.Post([this, snapshot, status] { coordinator_->OnSnapshot(snapshot, status); });
  }

 private:
  EventLoop& loop_;
  Coordinator* coordinator_ = nullptr;  // used on the loop only
};

}  // namespace wb
