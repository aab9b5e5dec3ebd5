#pragma once

#include <chrono>

namespace wb::client {

using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;
using Milliseconds = std::chrono::milliseconds;

/// How much longer than the daemon the client waits: the daemon answers by its deadline, so that
/// silence after this means it is stopped.
inline constexpr Milliseconds kDaemonGrace{1000};

/// What is left until `deadline`, rounded up to whole milliseconds; never negative.
[[nodiscard]] inline Milliseconds Remaining(Deadline deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - SteadyClock::now());
  return left < Milliseconds::zero() ? Milliseconds::zero() : left;
}

}  // namespace wb::client
