#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <variant>

#include <CLI/CLI.hpp>

#include "planner/explain/explanation.h"
#include "planner/model/plan.h"
#include "planner/model/refusal.h"
#include "planner/solve/planner.h"
#include "proto/convert.h"

namespace wb {

/// A job and the plan of it.
struct PlannedJob {
  LoadedJob loaded;
  Plan plan;
  std::optional<Rates> rates;  // a deployment's; a layout file says none
};

/// What is to be planned: a layout file or, by its name (*.yaml, *.yml), a deployment file.
struct JobFile {
  std::filesystem::path path = {};
  std::optional<std::int64_t> layers = {};  // of a deployment's model, from its first; none: all
  Routing routing = {};                     // what its plan may do
};

/// Adds FILE and `--layers N` to a subcommand.
void AddJobFile(CLI::App& command, JobFile& file);

/// Reads, checks and plans the file; or every reason why it is refused. A file that cannot be read
/// is refused like one that says nothing: the input is at fault, not the command.
///
/// Where there is a plan before, moves to rollout groups that are in both, unchanged, stay as they
/// are, as in a running job that changes from the one to the other (planner/solve/planner.h).
[[nodiscard]] std::variant<PlannedJob, Refusals> LoadPlannedJob(const JobFile& file,
                                                                const PlannedJob* before = nullptr);

}  // namespace wb
