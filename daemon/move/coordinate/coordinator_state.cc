#include "daemon/move/coordinate/coordinator_state.h"

#include "absl/strings/str_cat.h"

#include "daemon/state/seconds.h"

namespace wb {

Session* CoordinatorState::Find(const SessionId& session) {
  const auto found = sessions.find(session);
  return found == sessions.end() ? nullptr : &found->second;
}

void CoordinatorState::Tell(ToLeader message) {
  if (connected) leader.Send(std::move(message));
}

absl::Status CoordinatorState::LeaderStatus() const {
  if (connected) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("daemon ", options.node, " has no leader since ",
                                             Seconds(turns.Now() - leader_changed), ": ",
                                             leader_lost.message()));
}

}  // namespace wb
