#include "client/wbctl/plan/planned_job.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

#include "client/wbctl/process/mapped_file.h"
#include "planner/solve/planner.h"

namespace wb {

std::variant<PlannedJob, Refusals> LoadPlannedJob(const std::filesystem::path& file) {
  const absl::StatusOr<MappedFile> mapped = MappedFile::Open(file);
  if (!mapped.ok()) return Refusals{{"file", "", "", std::string(mapped.status().message())}};
  std::variant<LoadedJob, Refusals> loaded = JobFromJson(std::string_view(
      reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()));
  if (auto* refusals = std::get_if<Refusals>(&loaded)) return std::move(*refusals);
  std::variant<Plan, Refusals> solved = Solve(std::get<LoadedJob>(loaded).job);
  if (auto* refusals = std::get_if<Refusals>(&solved)) return std::move(*refusals);
  return PlannedJob{std::move(std::get<LoadedJob>(loaded)), std::move(std::get<Plan>(solved))};
}

}  // namespace wb
