#pragma once

#include <chrono>
#include <string>

namespace wb {

/// "1.2 s": how durations are written in texts for people.
[[nodiscard]] std::string Seconds(std::chrono::steady_clock::duration duration);

}  // namespace wb
