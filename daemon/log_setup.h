#pragma once

#include <string>

namespace wb {

/// Sets up the process's one logger: stderr, a line an event, as text or as JSON objects
/// {"time", "level", "thread", "text"}. Called once by main, before any thread starts.
void SetUpLog(const std::string& level, bool json);

}  // namespace wb
