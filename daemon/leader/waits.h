#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/leader/state.h"
#include "planner/model/culprit.h"

namespace wb {

/// Something that a version waits for: `who` is to do `what`, and has been for as long as it says.
struct Wait {
  Culprit who;
  std::string what;  // "engine0/2 (node n1) to accept"
};

/// Required groups of which no rank is registered.
[[nodiscard]] std::vector<std::string> AbsentRequired(const LeaderJob& job,
                                                      const Publication& publication);

// Who is late: for status, and for whatever ends a wait. Pure.

[[nodiscard]] std::vector<Wait> WaitsOf(const LeaderJob& job,
                                        const Publication& publication,
                                        Timers::Clock::time_point now);
[[nodiscard]] std::vector<Wait> WaitsOf(const LeaderJob& job,
                                        const Delivery& delivery,
                                        Timers::Clock::time_point now);
/// The trainers of a version that nobody has published yet, for a rollout that waits since then.
[[nodiscard]] std::vector<Wait> WaitsForTrainers(const LeaderJob& job,
                                                 Timers::Clock::time_point since,
                                                 Timers::Clock::time_point now);

/// "for engine0/2 (node n1) to accept, 1.2 s": the only place that words a wait.
[[nodiscard]] std::string ToString(const Wait& wait);
/// "waiting for ...; for ... and 3 more"; empty for none.
[[nodiscard]] std::string JoinWaits(const std::vector<Wait>& waits);
/// DEADLINE_EXCEEDED: the text, what is waited for in words, and who is late beside it.
[[nodiscard]] absl::Status Late(const std::string& text, const std::vector<Wait>& waits);

}  // namespace wb
