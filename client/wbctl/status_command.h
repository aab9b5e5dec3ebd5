#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

#include <CLI/CLI.hpp>

#include "client/wbctl/dial.h"
#include "client/wbctl/exit_code.h"
#include "client/wbctl/output.h"

namespace wb {

/// What a running daemon is asked.
enum class StatusQuestion : std::uint8_t { kStatus, kWorkers, kVersions, kRefusals };

struct StatusOptions {
  StatusQuestion question = StatusQuestion::kStatus;
  DaemonAddress address;
  std::string job;          // all but status; empty: of all
  std::uint32_t last = 0;   // versions: the newest N; 0: all that are kept
  std::uint32_t limit = 0;  // refusals: the first N; 0: all that are kept
  OutputFormat output = OutputFormat::kTable;
  std::chrono::milliseconds timeout{5'000};
};

/// Asks the daemon and prints its answer on `out`; kFailed with a line on stderr when there is
/// none.
ExitCode RunStatus(const StatusOptions& options, std::ostream& out);

/// `wbctl status`, `workers`, `versions` and `refusals`: what a running daemon or leader says of
/// itself.
void AddStatusCommands(CLI::App& app, ExitCode& exit);

}  // namespace wb
