#pragma once

#include <string>

namespace wb {

/// Opens /dev/null for those of stdin, stdout and stderr that are closed: the first socket would
/// get the number else, and what is logged would go into it. Called first of all by main.
void KeepStandardDescriptors();

/// Sets up the process's one logger: stderr, a line an event, as text or as JSON objects
/// {"time", "level", "thread", "text"}; what fails again and again is folded (FoldingSink), and
/// nobody waits for it to be written (QueuedSink). Called once by main, before any other thread
/// starts and after signals are blocked: it starts two of its own.
void SetUpLog(const std::string& level, bool json);

}  // namespace wb
