#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "daemon/move/coordinator.h"
#include "daemon/rpc/ops/ops_server.h"
#include "planner/base/mutex.h"

namespace wb {

/// Whether this daemon can take part in an update: it has a leader, which may be itself, does not
/// drain, and its loops turn. Stands between the stream to the leader and the coordinator, tells
/// the health service of the ops door, and whoever is told of it in words. Thread-safe.
class Readiness final : public LeaderEvents {
 public:
  /// `tell` is given a line for people at each change, on the control loop; may be empty.
  Readiness(std::string leader, std::function<void(const std::string&)> tell)
      : leader_(std::move(leader)), tell_(std::move(tell)) {}

  /// Both before the first event. `events` hears all that the leader says.
  void SetNext(LeaderEvents* events) { next_ = events; }

  /// From now on its health service says what we are; null: none does. `ops` outlives the events.
  void SetOps(OpsServer* ops) {
    const MutexLock lock(mu_);
    ops_ = ops;
    Show();
  }
  /// Whether all loops turn; true before the first call.
  void SetTurning(bool turning) {
    const MutexLock lock(mu_);
    turning_ = turning;
    Show();
  }
  bool draining() {
    const MutexLock lock(mu_);
    return draining_;
  }
  /// For good.
  void Drain() {
    const MutexLock lock(mu_);
    draining_ = true;
    Show();
  }

  void OnLeaderConnected() override;
  void OnLeaderLost(const absl::Status& why) override;
  void OnLeaderMessage(FromLeader message) override { next_->OnLeaderMessage(std::move(message)); }

 private:
  void Show() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (ops_ != nullptr) ops_->SetServing(connected_ && turning_ && !draining_);
  }

  const std::string leader_;
  const std::function<void(const std::string&)> tell_;
  LeaderEvents* next_ = nullptr;
  Mutex mu_;
  OpsServer* ops_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool connected_ ABSL_GUARDED_BY(mu_) = false;
  bool turning_ ABSL_GUARDED_BY(mu_) = true;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace wb
