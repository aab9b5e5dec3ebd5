#pragma once

#include <CLI/CLI.hpp>

#include "client/wbctl/exit_code.h"

namespace wb {

/// `wbctl layout CKPT --trainer SPEC --rollout SPEC...`: a layout file for a safetensors
/// checkpoint. The subcommand's callback leaves its result in `exit`.
void AddLayoutCommand(CLI::App& app, ExitCode& exit);

}  // namespace wb
