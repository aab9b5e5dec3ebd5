#pragma once

#include <string>
#include <vector>

#include "daemon/leader/state.h"

namespace wb {

// Who is late, in words: for status, and for the text of whatever ends a wait. Pure.

/// Required groups of which no rank is registered.
[[nodiscard]] std::vector<std::string> AbsentRequired(const LeaderJob& job,
                                                      const Publication& publication);

/// "for engine0/2 (node n1) to accept, 1.2 s", one for each thing that is waited for.
[[nodiscard]] std::vector<std::string> WaitsOf(const LeaderJob& job,
                                               const Publication& publication,
                                               Timers::Clock::time_point now);
[[nodiscard]] std::vector<std::string> WaitsOf(const LeaderJob& job,
                                               const Delivery& delivery,
                                               Timers::Clock::time_point now);

/// "waiting for ...; for ... and 3 more"; empty for none.
[[nodiscard]] std::string JoinWaits(const std::vector<std::string>& waits);

}  // namespace wb
