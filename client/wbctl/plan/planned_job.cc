#include "client/wbctl/plan/planned_job.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
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

// What a file says.
struct Read {
  LoadedJob loaded;
  std::optional<Rates> rates;
};

std::variant<Read, Refusals> ReadDeployment(const JobFile& file, std::string_view yaml) {
  const std::variant<Deployment, Refusals> parsed = ParseDeployment(yaml, file.path.string());
  if (const auto* refusals = std::get_if<Refusals>(&parsed)) return *refusals;
  const auto& deployment = std::get<Deployment>(parsed);
  const fs::path path = file.path.parent_path() / deployment.config;
  const absl::StatusOr<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) {
    return FileRefusal(absl::StrCat(file.path.string(),
                                    ": model.config: ", mapped.status().message(),
                                    "; want a config.json, by its path from this file's folder"));
  }
  const std::variant<HfConfig, Refusals> config = ParseHfConfig(TextOf(*mapped), path.string());
  if (const auto* refusals = std::get_if<Refusals>(&config)) return *refusals;
  std::variant<Job, Refusals> job =
      LayOut(deployment, std::get<HfConfig>(config), file.layers.value_or(HfConfig::kMaxLayers));
  if (auto* refusals = std::get_if<Refusals>(&job)) return std::move(*refusals);
  return Read{{std::get<Job>(std::move(job)), {}, {}},
              Rates{deployment.cluster.rail_gb_per_s, deployment.cluster.nvlink_gb_per_s}};
}

std::variant<Read, Refusals> ReadFile(const JobFile& file) {
  const absl::StatusOr<MappedFile> mapped = MappedFile::Open(file.path);
  if (!mapped.ok()) return FileRefusal(mapped.status());
  const std::string extension = absl::AsciiStrToLower(file.path.extension().string());
  if (extension == ".yaml" || extension == ".yml") return ReadDeployment(file, TextOf(*mapped));
  if (file.layers.has_value()) {
    return FileRefusal(absl::StrCat("--layers: ", file.path.string(),
                                    " is a layout file, want a deployment file (*.yaml)"));
  }
  std::variant<LoadedJob, Refusals> loaded = JobFromJson(TextOf(*mapped));
  if (auto* refusals = std::get_if<Refusals>(&loaded)) return std::move(*refusals);
  return Read{std::get<LoadedJob>(std::move(loaded)), std::nullopt};
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

std::variant<PlannedJob, Refusals> LoadPlannedJob(const JobFile& file, const PlannedJob* before) {
  std::variant<Read, Refusals> read = ReadFile(file);
  if (auto* refusals = std::get_if<Refusals>(&read)) return std::move(*refusals);
  auto& [loaded, rates] = std::get<Read>(read);
  std::optional<PreviousPlan> previous;
  if (before != nullptr) previous.emplace(PreviousPlan{before->loaded.job, before->plan});
  std::variant<Plan, Refusals> solved = Solve(loaded.job, previous, file.routing);
  if (auto* refusals = std::get_if<Refusals>(&solved)) return std::move(*refusals);
  return PlannedJob{std::move(loaded), std::get<Plan>(std::move(solved)), rates};
}

}  // namespace wb
