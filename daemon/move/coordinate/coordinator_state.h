#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "daemon/move/coordinate/held_plan.h"
#include "daemon/move/coordinate/local_attempt.h"
#include "daemon/move/coordinate/session.h"
#include "daemon/move/coordinator.h"
#include "planner/model/culprit.h"
#include "transport/loop/turns.h"

namespace wb {

/// (job, rollout group).
using GroupKey = std::pair<std::string, std::string>;

/// What the leader has offered to a rollout group that has a rank here.
struct Offer {
  Version version;
  bool open = false;  // it may be received
  Version failed_version;
  absl::Status failure;  // of failed_version
};

/// What the coordinator's verbs (sessions, calls, attempts) work on. Touched only inside turns.
struct CoordinatorState {
  CoordinatorState(Timers& timers, LeaderLink& leader_link, CoordinatorOptions coordinator_options)
      : turns(timers),
        leader(leader_link),
        options(std::move(coordinator_options)),
        leader_changed(timers.Now()) {}

  Turns turns;
  LeaderLink& leader;
  CoordinatorOptions options;
  AttemptRunner* runner = nullptr;
  SessionNotices* notices = nullptr;

  bool connected = false;
  Timers::Clock::time_point leader_changed;  // when `connected` did
  absl::Status leader_lost = absl::UnavailableError("not connected yet");
  bool draining = false;

  std::map<SessionId, Session> sessions;
  std::map<AttemptId, LocalAttempt> attempts;  // all that the runner knows
  std::map<GroupKey, HeldPlan> plans;          // the newest part of each group
  std::map<GroupKey, Offer> offers;
  std::map<GroupKey, Version> commits;  // the newest of each group: for a leader that may not know
  std::uint64_t next_region = 1;
  std::uint64_t next_snapshot = 1;
  std::uint64_t stale_messages = 0;  // of unknown attempts, or out of turn; dropped

  Session* Find(const SessionId& session);
  /// Dropped while there is no leader: everything is replayed when there is one.
  void Tell(ToLeader message);
  /// Why nothing can be asked of the leader now: UNAVAILABLE with reason and duration, or OK.
  absl::Status LeaderStatus() const;
  /// The leader, whose node we do not know, as the one culprit.
  static std::vector<Culprit> LeaderCulprit(Culprit::Reason reason,
                                            const std::string& stage,
                                            Timers::Clock::duration since);
};

}  // namespace wb
