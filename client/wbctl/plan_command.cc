#include "client/wbctl/plan_command.h"

#include <iostream>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_join.h"

#include "client/wbctl/plan/diff_output.h"
#include "client/wbctl/plan/explained_plan.h"
#include "client/wbctl/plan/plan_json.h"
#include "client/wbctl/plan/plan_table.h"
#include "client/wbctl/plan/readable.h"
#include "planner/explain/explanation.h"
#include "planner/explain/plan_diff.h"

namespace wb {
namespace {

void Write(const PlanOptions& options, const PlannedJob& planned, std::ostream& out) {
  const Job& job = planned.loaded.job;
  const Explanation explanation = Explain(job, planned.plan, planned.rates);
  const ExplainedPlan explained{job, planned.plan, explanation, planned.rates};
  if (options.output == OutputFormat::kTable) {
    WritePlanTable(explained, options.summary, out);
  } else if (options.summary) {
    WritePlanSummaryJson(explained, out);
  } else {
    WritePlanJson(explained, out);
  }
}

// In a table the summary of a job that has no plan is the tensors that are at fault.
ExitCode Refuse(const PlanOptions& options,
                const Refusals& refusals,
                std::ostream& out,
                std::ostream& err) {
  std::set<std::string> tensors;
  for (const Refusal& refusal : refusals) {
    if (!refusal.tensor.empty()) tensors.insert(refusal.tensor);
  }
  if (options.summary && options.output == OutputFormat::kTable && !tensors.empty()) {
    out << "refused        " << Count(tensors.size(), "tensor") << ": "
        << absl::StrJoin(tensors, ", ") << '\n';
  }
  return PrintRefusals(refusals, options.output, out, err);
}

// Reasons against one of two files, which mostly do not name it.
Refusals Of(const std::filesystem::path& file, Refusals refusals) {
  for (Refusal& refusal : refusals) {
    if (refusal.text.find(file.string()) == std::string::npos) {
      refusal.text.insert(0, file.string() + ": ");
    }
  }
  return refusals;
}

ExitCode RunDiff(const PlanOptions& options, std::ostream& out, std::ostream& err) {
  JobFile old_file = options.file;
  old_file.path = *options.before;
  const std::variant<PlannedJob, Refusals> before = LoadPlannedJob(old_file);
  if (const auto* refusals = std::get_if<Refusals>(&before)) {
    return Refuse(options, Of(old_file.path, *refusals), out, err);
  }
  const auto& was = std::get<PlannedJob>(before);
  const std::variant<PlannedJob, Refusals> after = LoadPlannedJob(options.file, &was);
  if (const auto* refusals = std::get_if<Refusals>(&after)) {
    return Refuse(options, Of(options.file.path, *refusals), out, err);
  }
  const auto& is = std::get<PlannedJob>(after);
  const std::variant<PlanDiff, Refusals> diff =
      DiffPlans({was.loaded.job, was.plan}, is.loaded.job, is.plan);
  if (const auto* refusals = std::get_if<Refusals>(&diff)) {
    return Refuse(options, *refusals, out, err);
  }
  WriteDiff(was, is, std::get<PlanDiff>(diff), options.output, out);
  return FinishOutput(out, err);
}

}  // namespace

ExitCode RunPlan(const PlanOptions& options, std::ostream& out, std::ostream& err) {
  if (options.before.has_value()) return RunDiff(options, out, err);
  const std::variant<PlannedJob, Refusals> planned = LoadPlannedJob(options.file);
  if (const auto* refusals = std::get_if<Refusals>(&planned)) {
    return Refuse(options, *refusals, out, err);
  }
  Write(options, std::get<PlannedJob>(planned), out);
  return FinishOutput(out, err);
}

void AddPlanCommand(CLI::App& app, ExitCode& exit) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "print the transfer plan of a layout or deployment file");
  AddJobFile(*command, options->file);
  AddFlag(*command, "--fan-out", options->file.routing.fan_out,
          "plan as if engines passed on to others what they get; daemons do not yet");
  AddFlag(*command, "--node-sharing", options->file.routing.node_sharing,
          "plan as if rollouts of a node passed it on to each other; daemons do not yet");
  AddOutputOption(*command, options->output);
  CLI::Option* summary = AddFlag(*command, "--summary", options->summary, "leave the moves out");
  command
      ->add_option("--diff", options->before,
                   "say what a job that runs with file OLD would do differently with FILE")
      ->check(IfEmpty)
      ->excludes(summary)
      ->option_text("OLD");
  command->callback([options, &exit] { exit = RunPlan(*options, std::cout, std::cerr); });
}

}  // namespace wb
