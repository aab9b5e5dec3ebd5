#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "daemon/state/cluster_messages.h"
#include "planner/model/ids.h"
#include "transport/loop/timers.h"

namespace wb {

/// An attempt's life at one daemon. kAsking: go has come, and the clients whose memory will be
/// written are asked to declare it invalid first. kStaged is a promise: only the leader ends it.
/// kFinishing, kAborting: decided; the mover is letting go of the memory.
enum class LocalState : std::uint8_t {
  kPreparing,
  kPrepared,
  kAsking,
  kMoving,
  kStaged,
  kFinishing,
  kAborting
};

constexpr bool CanMove(LocalState from, LocalState to) {
  using enum LocalState;
  switch (from) {
    case kPreparing:
      return to == kPrepared || to == kAborting;
    case kPrepared:
      return to == kAsking || to == kMoving || to == kAborting;
    case kAsking:
      return to == kMoving || to == kAborting;
    case kMoving:
      return to == kStaged || to == kAborting;
    case kStaged:
      return to == kFinishing || to == kAborting;
    case kFinishing:
    case kAborting:
      return false;
  }
  return false;
}
static_assert(!CanMove(LocalState::kMoving, LocalState::kFinishing));
static_assert(!CanMove(LocalState::kFinishing, LocalState::kAborting));
static_assert(!CanMove(LocalState::kAborting, LocalState::kFinishing));

[[nodiscard]] std::string_view Name(LocalState state);

/// A daemon's part in one attempt. `state` moves by Step alone.
struct LocalAttempt {
  AttemptId id;
  std::string job;
  std::string group;
  Version version;
  LocalState state = LocalState::kPreparing;
  Timers::Clock::time_point since;
  std::set<SessionId> receivers;  // local ranks of the group
  std::set<SessionId> sources;    // local workers whose memory it reads
  std::set<SessionId> snapshots;  // of these, those whose snapshot it reads instead
  std::set<SessionId> asked;      // of these, those that have not accepted the go notice
  std::optional<TimerId> timer;   // of kAsking
  bool failed = false;            // the leader has been told; its abort will come
  bool leader_waits = false;      // kAborting: the leader wants to hear of the end
  /// kStaged: the leader that asked for it is lost; the next tells each receiver what became of it.
  bool orphan = false;
};

/// Takes a legal step and logs it; an illegal one is a fault of ours and ends the process.
void Step(LocalAttempt& attempt, LocalState to, Timers::Clock::time_point now);

}  // namespace wb
