#include "client/wbctl/plan_command.h"

#include <iostream>
#include <memory>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/wbctl/plan/plan_json.h"
#include "client/wbctl/plan/plan_table.h"
#include "client/wbctl/process/mapped_file.h"
#include "planner/solve/planner.h"
#include "proto/convert.h"

namespace wb {
namespace {

void Write(const PlanOptions& options, const Job& job, const Plan& plan, std::ostream& out) {
  if (options.output == OutputFormat::kTable) {
    WritePlanTable(job, plan, options.summary, out);
  } else if (options.summary) {
    WritePlanSummaryJson(job, plan, out);
  } else {
    WritePlanJson(job, plan, out);
  }
}

}  // namespace

ExitCode RunPlan(const PlanOptions& options, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(options.file);
  if (!file.ok()) return PrintFailure(file.status(), err);
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  const std::variant<LoadedJob, Refusals> loaded = JobFromJson(text);
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) {
    return PrintRefusals(*refusals, options.output, out, err);
  }
  const Job& job = std::get<LoadedJob>(loaded).job;
  const std::variant<Plan, Refusals> solved = Solve(job);
  if (const auto* refusals = std::get_if<Refusals>(&solved)) {
    return PrintRefusals(*refusals, options.output, out, err);
  }
  Write(options, job, std::get<Plan>(solved), out);
  out.flush();
  return out ? ExitCode::kDone
             : PrintFailure(absl::DataLossError("cannot write to standard output"), err);
}

void AddPlanCommand(CLI::App& app, ExitCode& exit) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "print the transfer plan of a layout file");
  command->add_option("FILE", options->file, "a layout file")->required();
  AddOutputOption(*command, options->output);
  command->add_flag("--summary", options->summary, "leave the moves out");
  command->callback([options, &exit] { exit = RunPlan(*options, std::cout, std::cerr); });
}

}  // namespace wb
