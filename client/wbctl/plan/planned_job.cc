#include "client/wbctl/plan/planned_job.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "client/wbctl/process/mapped_file.h"
#include "planner/frameworks/deployment.h"
#include "planner/frameworks/hf_config.h"
#include "planner/solve/planner.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

std::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Refusals FileRefusal(std::string text) {
  return {{"file", "", "", std::move(text)}};
}

Refusals FileRefusal(const absl::Status& status) {
  return FileRefusal(std::string(status.message()));
}

std::variant<LoadedJob, Refusals> LoadDeployment(const JobFile& file, std::string_view yaml) {
  const std::variant<Deployment, Refusals> parsed = ParseDeployment(yaml, file.path.string());
  if (const auto* refusals = std::get_if<Refusals>(&parsed)) return *refusals;
  const auto& deployment = std::get<Deployment>(parsed);
  const fs::path path = file.path.parent_path() / deployment.config;
  const absl::StatusOr<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) return FileRefusal(mapped.status());
  const std::variant<HfConfig, Refusals> config = ParseHfConfig(TextOf(*mapped), path.string());
  if (const auto* refusals = std::get_if<Refusals>(&config)) return *refusals;
  std::variant<Job, Refusals> job =
      LayOut(deployment, std::get<HfConfig>(config), file.layers.value_or(HfConfig::kMaxLayers));
  if (auto* refusals = std::get_if<Refusals>(&job)) return std::move(*refusals);
  return LoadedJob{std::get<Job>(std::move(job)), {}, {}};
}

std::variant<LoadedJob, Refusals> Load(const JobFile& file) {
  const absl::StatusOr<MappedFile> mapped = MappedFile::Open(file.path);
  if (!mapped.ok()) return FileRefusal(mapped.status());
  const fs::path extension = file.path.extension();
  if (extension == ".yaml" || extension == ".yml") return LoadDeployment(file, TextOf(*mapped));
  if (file.layers.has_value()) {
    return FileRefusal(absl::StrCat("--layers: ", file.path.string(),
                                    " is a layout file, want a deployment file (*.yaml)"));
  }
  return JobFromJson(TextOf(*mapped));
}

}  // namespace

void AddJobFile(CLI::App& command, JobFile& file) {
  command.add_option("FILE", file.path, "a layout file (JSON) or a deployment file (*.yaml)")
      ->required();
  command
      .add_option("--layers", file.layers, "only the first N layers of a deployment file's model")
      ->check(CLI::Range(std::int64_t{1}, HfConfig::kMaxLayers))
      ->option_text("N");
}

std::variant<PlannedJob, Refusals> LoadPlannedJob(const JobFile& file) {
  std::variant<LoadedJob, Refusals> loaded = Load(file);
  if (auto* refusals = std::get_if<Refusals>(&loaded)) return std::move(*refusals);
  std::variant<Plan, Refusals> solved = Solve(std::get<LoadedJob>(loaded).job);
  if (auto* refusals = std::get_if<Refusals>(&solved)) return std::move(*refusals);
  return PlannedJob{std::move(std::get<LoadedJob>(loaded)), std::move(std::get<Plan>(solved))};
}

}  // namespace wb
