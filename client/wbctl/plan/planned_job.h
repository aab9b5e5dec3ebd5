#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <variant>

#include <CLI/CLI.hpp>

#include "planner/model/plan.h"
#include "planner/model/refusal.h"
#include "proto/convert.h"

namespace wb {

/// A job and the plan of it.
struct PlannedJob {
  LoadedJob loaded;
  Plan plan;
};

/// What is to be planned: a layout file or, by its name (*.yaml, *.yml), a deployment file.
struct JobFile {
  std::filesystem::path path = {};
  std::optional<std::int64_t> layers = {};  // of a deployment's model, from its first; none: all
};

/// Adds FILE and `--layers N` to a subcommand.
void AddJobFile(CLI::App& command, JobFile& file);

/// Reads, checks and plans the file; or every reason why it is refused. A file that cannot be read
/// is refused like one that says nothing: the input is at fault, not the command.
[[nodiscard]] std::variant<PlannedJob, Refusals> LoadPlannedJob(const JobFile& file);

}  // namespace wb
