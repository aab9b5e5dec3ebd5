#include "client/wbctl/layout_command.h"

#include <cctype>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/wbctl/contents/checkpoint.h"
#include "client/wbctl/contents/cut.h"
#include "client/wbctl/output.h"
#include "proto/convert.h"

namespace wb {
namespace {

struct LayoutOptions {
  std::filesystem::path checkpoint;
  std::string job;
  std::string trainer;
  std::vector<std::string> rollouts;
};

/// The checkpoint's file name as a job name: [A-Za-z0-9._-]+.
std::string JobName(const std::filesystem::path& checkpoint) {
  std::filesystem::path path = checkpoint;
  if (path.filename().empty()) path = path.parent_path();  // a folder with a trailing slash
  std::string name = path.stem().string();
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    if (!plain) c = '-';
  }
  return name.empty() ? "checkpoint" : name;
}

ExitCode RunLayout(const LayoutOptions& options) {
  std::vector<CutGroup> groups;
  const auto add = [&](const std::string& text, CutGroup group) {
    const absl::StatusOr<Cut> cut = ParseCut(text);
    if (!cut.ok()) {
      std::cerr << "wbctl layout: " << cut.status().message() << '\n';
      return false;
    }
    group.cut = *cut;
    groups.push_back(std::move(group));
    return true;
  };
  if (!add(options.trainer, {.role = Role::kTrainer, .group = "policy", .node = "n0", .cut = {}})) {
    return ExitCode::kUsage;
  }
  for (std::size_t i = 0; i < options.rollouts.size(); ++i) {
    if (!add(options.rollouts[i], {.role = Role::kRollout,
                                   .group = absl::StrCat("engine", i),
                                   .node = absl::StrCat("n", i + 1),
                                   .cut = {}})) {
      return ExitCode::kUsage;
    }
  }
  const std::variant<Checkpoint, Refusals> opened = Checkpoint::Open(options.checkpoint);
  if (const auto* refusals = std::get_if<Refusals>(&opened)) {
    return PrintRefusals(*refusals, OutputFormat::kTable);
  }
  std::vector<Tensor> tensors;
  for (const Checkpoint::Entry& entry : std::get<Checkpoint>(opened).entries()) {
    tensors.push_back(entry.tensor);
  }
  const std::string file = CutLayoutJson(
      options.job.empty() ? JobName(options.checkpoint) : options.job, tensors, groups);
  // A checkpoint may have names and shapes that no layout has.
  const std::variant<LoadedJob, Refusals> loaded = JobFromJson(file);
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) {
    return PrintRefusals(*refusals, OutputFormat::kTable);
  }
  std::cout << file;
  return FinishOutput(std::cout, std::cerr);
}

}  // namespace

void AddLayoutCommand(CLI::App& app, ExitCode& exit) {
  const auto options = std::make_shared<LayoutOptions>();
  CLI::App* command = app.add_subcommand("layout", "write a layout file for a checkpoint");
  command->add_option("CKPT", options->checkpoint, "a .safetensors file, its index, or a folder")
      ->required();
  command->add_option("--trainer", options->trainer, "rows:N, columns:N or replicated:N")
      ->required();
  command
      ->add_option("--rollout", options->rollouts,
                   "rows:N, columns:N or replicated:N; once for each engine")
      ->required()
      ->allow_extra_args(false);
  command->footer(
      "rows cut dimension 0 over N ranks, columns the last one; what does not divide is cut\n"
      "unevenly, the first ranks hold one index more. 1-D tensors and scalars are whole on every\n"
      "rank. The trainers are on node n0, each engine on a node of its own.");
  command->add_option("--job", options->job, "name of the job; default: of the checkpoint");
  command->callback([options, &exit] { exit = RunLayout(*options); });
}

}  // namespace wb
