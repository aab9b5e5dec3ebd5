#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>

#include <CLI/CLI.hpp>

#include "client/wbctl/exit_code.h"
#include "client/wbctl/output.h"
#include "client/wbctl/plan/planned_job.h"

namespace wb {

struct PlanOptions {
  JobFile file = {};
  OutputFormat output = OutputFormat::kJson;
  bool summary = false;                              // leave the moves out
  std::optional<std::filesystem::path> before = {};  // say what differs from this file's plan
};

/// Plans a layout or deployment file and prints the plan on `out`, or what is different from that
/// of another. A file that cannot be read or is refused, or a job that has no plan: every reason,
/// one a line, on `err` (and as JSON on `out`), kRefused; with `summary` also which tensors they
/// name.
ExitCode RunPlan(const PlanOptions& options, std::ostream& out, std::ostream& err);

/// `wbctl plan FILE`. The subcommand's callback leaves its result in `exit`.
void AddPlanCommand(CLI::App& app, ExitCode& exit);

}  // namespace wb
