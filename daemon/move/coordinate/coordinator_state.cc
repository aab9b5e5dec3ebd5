#include "daemon/move/coordinate/coordinator_state.h"

#include <chrono>

#include "absl/strings/str_cat.h"

#include "daemon/state/seconds.h"

namespace wb {

Session* CoordinatorState::Find(const SessionId& session) {
  const auto found = sessions.find(session);
  return found == sessions.end() ? nullptr : &found->second;
}

std::vector<Culprit> CoordinatorState::LeaderCulprit(Culprit::Reason reason,
                                                     const std::string& stage,
                                                     Timers::Clock::duration since) {
  return {{reason, "", "", "", "", stage, std::chrono::duration<double>(since).count()}};
}

void CoordinatorState::Tell(ToLeader message) {
  if (connected) leader.Send(std::move(message));
}

absl::Status CoordinatorState::LeaderStatus() const {
  if (connected) return absl::OkStatus();
  const auto since = turns.Now() - leader_changed;
  return WithCulprits(
      absl::UnavailableError(absl::StrCat("daemon ", options.node, " has no leader since ",
                                          Seconds(since), ": ", leader_lost.message())),
      LeaderCulprit(Culprit::Reason::kGone, "lead", since));
}

}  // namespace wb
