#pragma once

#include <CLI/CLI.hpp>

#include "client/wbctl/exit_code.h"

namespace wb {

/// `wbctl rehearse FILE`: the whole system on this machine. Also adds the hidden subcommand that
/// its worker processes run. The callback leaves its result in `exit`.
void AddRehearseCommand(CLI::App& app, ExitCode& exit);

}  // namespace wb
