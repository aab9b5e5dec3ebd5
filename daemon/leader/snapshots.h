#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/leader/leader.h"
#include "daemon/leader/state.h"

namespace wb {

// What status shows of the leader's state, by value. Pure.

[[nodiscard]] std::vector<MemberSnapshot> SnapshotMembers(const LeaderJob& job);
/// Newest first, at most `last`.
[[nodiscard]] std::vector<VersionSnapshot> SnapshotVersions(const LeaderJob& job,
                                                            std::size_t last,
                                                            Timers::Clock::time_point now);
/// "job gqa version 3: waiting for engine0/2 (node n1) to accept, 1.2 s".
[[nodiscard]] std::vector<std::string> SnapshotWaits(const LeaderJob& job,
                                                     Timers::Clock::time_point now);

}  // namespace wb
