#pragma once

#include <chrono>

namespace wb::test {

/// `bound` times WB_TIME_SLACK (default 1; 5 in CI and under sanitizers): how long a thing that is
/// promised within `bound` may take on a slow machine.
[[nodiscard]] std::chrono::milliseconds Slack(std::chrono::milliseconds bound);

}  // namespace wb::test
