#include "daemon/move/coordinate/local_attempt.h"

#include <chrono>
#include <cstdlib>

#include <spdlog/spdlog.h>

namespace wb {

std::string_view Name(LocalState state) {
  using enum LocalState;
  switch (state) {
    case kPreparing:
      return "preparing";
    case kPrepared:
      return "prepared";
    case kAsking:
      return "asking";
    case kMoving:
      return "moving";
    case kStaged:
      return "staged";
    case kFinishing:
      return "finishing";
    case kAborting:
      return "aborting";
  }
  return "?";
}

void Step(LocalAttempt& attempt, LocalState to, Timers::Clock::time_point now) {
  if (!CanMove(attempt.state, to)) {
    spdlog::critical("illegal step {} -> {}", Name(attempt.state), Name(to));
    std::abort();
  }
  const std::chrono::duration<double, std::milli> after = now - attempt.since;
  spdlog::info("attempt={:016x} job={} version={} group={} {}->{} after_ms={:.1f}",
               attempt.id.value(), attempt.job, attempt.version.value(), attempt.group,
               Name(attempt.state), Name(to), after.count());
  attempt.state = to;
  attempt.since = now;
}

}  // namespace wb
