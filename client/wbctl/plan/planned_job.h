#pragma once

#include <filesystem>
#include <variant>

#include "planner/model/plan.h"
#include "planner/model/refusal.h"
#include "proto/convert.h"

namespace wb {

/// A layout file's job, and the plan of it.
struct PlannedJob {
  LoadedJob loaded;
  Plan plan;
};

/// Reads, checks and plans a layout file; or every reason why it is refused. A file that cannot be
/// read is refused like one that says nothing: the input is at fault, not the command.
[[nodiscard]] std::variant<PlannedJob, Refusals> LoadPlannedJob(const std::filesystem::path& file);

}  // namespace wb
