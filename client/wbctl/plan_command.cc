#include "client/wbctl/plan_command.h"

#include <iostream>
#include <memory>
#include <variant>

#include "client/wbctl/plan/plan_json.h"
#include "client/wbctl/plan/plan_table.h"

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
  const std::variant<PlannedJob, Refusals> planned = LoadPlannedJob(options.file);
  if (const auto* refusals = std::get_if<Refusals>(&planned)) {
    return PrintRefusals(*refusals, options.output, out, err);
  }
  const auto& [loaded, plan] = std::get<PlannedJob>(planned);
  Write(options, loaded.job, plan, out);
  return FinishOutput(out, err);
}

void AddPlanCommand(CLI::App& app, ExitCode& exit) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "print the transfer plan of a layout or deployment file");
  AddJobFile(*command, options->file);
  AddOutputOption(*command, options->output);
  command->add_flag("--summary", options->summary, "leave the moves out");
  command->callback([options, &exit] { exit = RunPlan(*options, std::cout, std::cerr); });
}

}  // namespace wb
