#include "client/wbctl/rehearse_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "client/wbctl/contents/checkpoint.h"
#include "client/wbctl/contents/checkpoint_contents.h"
#include "client/wbctl/output.h"
#include "client/wbctl/plan/planned_job.h"
#include "client/wbctl/rehearse/rehearsal.h"
#include "client/wbctl/rehearse/worker_process.h"
#include "planner/base/descriptor_limit.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

struct CommandOptions {
  JobFile file;
  OutputFormat output = OutputFormat::kTable;
  std::int64_t timeout_s = 120;
  bool verbose = false;
  std::optional<std::uint64_t> versions;
  RehearsalOptions rehearsal;
};

/// What is rehearsed, whole and checked.
struct Input {
  PlannedJob planned;
  std::optional<Checkpoint> checkpoint;
};

void Append(Refusals& to, Refusals from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

/// Every reason against the checkpoint, alone and with the job; or the checkpoint.
std::variant<Checkpoint, Refusals> LoadCheckpoint(const Job& job, const RehearsalOptions& options) {
  std::variant<Checkpoint, Refusals> opened = Checkpoint::Open(options.checkpoint);
  const auto* checkpoint = std::get_if<Checkpoint>(&opened);
  if (checkpoint == nullptr) return opened;
  Refusals refusals = CheckpointMismatches(job, *checkpoint);
  if (!options.export_to.empty()) Append(refusals, ExportObstacles(job, *checkpoint));
  if (!refusals.empty()) return refusals;
  return opened;
}

/// All input, or every reason why it is refused.
std::variant<Input, Refusals> Load(const CommandOptions& options) {
  std::variant<PlannedJob, Refusals> planned = LoadPlannedJob(options.file);
  if (auto* refusals = std::get_if<Refusals>(&planned)) return std::move(*refusals);
  Input input{std::move(std::get<PlannedJob>(planned)), {}};
  if (options.rehearsal.checkpoint.empty()) return input;
  std::variant<Checkpoint, Refusals> checkpoint =
      LoadCheckpoint(input.planned.loaded.job, options.rehearsal);
  if (auto* refusals = std::get_if<Refusals>(&checkpoint)) return std::move(*refusals);
  input.checkpoint = std::move(std::get<Checkpoint>(checkpoint));
  return input;
}

/// The worker named by --flip, or "" when there is none of that name.
bool KnownWorker(const Job& job, const std::string& name) {
  return std::any_of(job.layouts.begin(), job.layouts.end(),
                     [&](const Layout& layout) { return layout.name.ToString() == name; });
}

ExitCode RunRehearse(const CommandOptions& options) {
  RaiseDescriptorLimit();  // the workers inherit it: a param is a buffer of its own there
  std::variant<Input, Refusals> loaded = Load(options);
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) {
    return PrintRefusals(*refusals, options.output);
  }
  const auto& [planned, checkpoint] = std::get<Input>(loaded);
  RehearsalOptions rehearsal = options.rehearsal;
  if (!rehearsal.flip.empty() && !KnownWorker(planned.loaded.job, rehearsal.flip)) {
    std::cerr << "wbctl rehearse: --flip " << rehearsal.flip << " is no worker of the file\n";
    return ExitCode::kUsage;
  }
  rehearsal.timeout = std::chrono::seconds(options.timeout_s);
  // A checkpoint's elements are the same in every version: one says it all, unless more are asked.
  rehearsal.versions = options.versions.value_or(checkpoint ? 1 : 3);
  if (options.verbose) {
    rehearsal.progress = [](const std::string& line) { std::cerr << line << std::endl; };
  }
  std::error_code error;
  rehearsal.worker_binary = fs::read_symlink("/proc/self/exe", error);
  if (error) return PrintFailure(absl::NotFoundError("cannot read /proc/self/exe"));
  if (rehearsal.daemon_binary.empty()) {
    rehearsal.daemon_binary = rehearsal.worker_binary.parent_path() / "weightbridged";
  }
  RehearsalResult result;
  const absl::Status status = Rehearse(
      {planned.loaded, planned.plan, checkpoint ? &*checkpoint : nullptr}, rehearsal, result);
  if (!result.kept.empty()) std::cerr << "kept: " << result.kept.string() << '\n';
  if (!status.ok()) return PrintFailure(status);
  std::cout << (options.output == OutputFormat::kJson ? ToJson(result) : ToTable(result));
  std::cerr << DescribeDifferences(result);
  const ExitCode written = FinishOutput(std::cout, std::cerr);
  return result.differs() ? ExitCode::kDiffers : written;
}

void AddFillOptions(CLI::App& command, CommandOptions& options) {
  const std::map<std::string, Fill> fills{
      {"hash", Fill::kHash}, {"row", Fill::kRow}, {"index", Fill::kIndex}};
  RehearsalOptions& rehearsal = options.rehearsal;
  CLI::Option* fill = AddChoice(command, "--fill", fills, rehearsal.fill, "what the elements hold");
  command
      .add_option("--versions", options.versions,
                  "how many; default 3, or 1 with --checkpoint, whose elements are always the same")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}));
  command.add_option("--first-version", rehearsal.first_version, "number of the first version")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62));
  CLI::Option* checkpoint = command
                                .add_option("--checkpoint", rehearsal.checkpoint,
                                            "fill the trainers from a safetensors checkpoint")
                                ->check(IfEmpty)
                                ->excludes(fill);
  command
      .add_option("--export", rehearsal.export_to,
                  "gather the checkpoint from the first engine into this file, and compare")
      ->check(IfEmpty)
      ->needs(checkpoint);
  command.add_option("--dump", rehearsal.dump, "write each rollout param to this folder, as .npy")
      ->check(IfEmpty);
  command
      .add_option("--flip", rehearsal.flip,
                  "spoil one bit of this worker's memory, to see that the check notices")
      ->check(IfEmpty);
}

}  // namespace

void AddRehearseCommand(CLI::App& app, ExitCode& exit) {
  const auto options = std::make_shared<CommandOptions>();
  CLI::App* command = app.add_subcommand(
      "rehearse",
      "run a layout or deployment file's daemons and workers on this machine and check every byte");
  AddJobFile(*command, options->file);
  AddOutputOption(*command, options->output);
  AddFillOptions(*command, *options);
  RehearsalOptions& rehearsal = options->rehearsal;
  const std::map<std::string, std::string> transports{
      {"tcp", "tcp"}, {"shm", "shm"}, {"auto", "auto"}};
  AddChoice(*command, "--transport", transports, rehearsal.transport,
            "between daemons; auto: shm on one host, as here, and tcp otherwise");
  const std::map<std::string, bool> sources{{"in_place", false}, {"snapshot", true}};
  AddChoice(*command, "--source", sources, rehearsal.snapshot,
            "what trainers wait for: the deliveries, or a copy of their memory, which they then "
            "overwrite at once");
  command->add_option("--timeout", options->timeout_s, "seconds that any one step may take")
      ->check(CLI::Range(1, 86'400));
  AddFlag(*command, "--keep", rehearsal.keep, "keep the folder with configurations and logs");
  command
      ->add_option("--daemon-binary", rehearsal.daemon_binary,
                   "default: weightbridged beside this program")
      ->check(IfEmpty);
  AddFlag(*command, "-v,--verbose", options->verbose, "say what is started and done");
  command->callback([options, &exit] { exit = RunRehearse(*options); });

  const auto spec = std::make_shared<fs::path>();
  CLI::App* worker = app.add_subcommand("rehearse-worker", "")->group("");
  worker->add_option("SPEC", *spec)->required();
  worker->callback([spec, &exit] { exit = RunWorkerProcess(*spec); });
}

}  // namespace wb
