#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/move/coordinate/calls.h"
#include "daemon/move/coordinate/coordinator_state.h"

namespace wb {

/// The verb "join": sessions with their regions, from the door to the leader's table and out
/// again. Called inside turns only.
class Sessions {
 public:
  using Clock = Timers::Clock;

  Sessions(CoordinatorState& state, Calls& calls) : state_(state), calls_(calls) {}

  void Open(SessionOpening opening,
            Clock::time_point deadline,
            std::function<void(SessionOpened)> done);
  void Close(const SessionId& id, const absl::Status& status);
  void CloseAll(const absl::Status& status);

  // The leader's word.
  void OnWorkerRegistered(const WorkerRegistered& message);
  /// Everything a new leader must know of this daemon's workers.
  void Replay();
  void LeaderLost();

 private:
  absl::Status Check(const SessionOpening& opening) const;
  void AddSnapshot(Session& session, std::vector<Region> snapshots);
  void Register(const Session& session);
  void ForgetOldOffer(const Session& first);
  void OnDeadline(const SessionId& id);
  void AnswerOpening(Session& session, const absl::Status& status);
  void Drop(const SessionId& id);

  CoordinatorState& state_;
  Calls& calls_;
};

}  // namespace wb
