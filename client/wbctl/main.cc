// wbctl: the command of those who operate WeightBridge. Each subcommand registers itself here.

#include <exception>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "client/wbctl/exit_code.h"
#include "client/wbctl/layout_command.h"
#include "client/wbctl/output.h"
#include "client/wbctl/plan_command.h"
#include "client/wbctl/rehearse_command.h"
#include "client/wbctl/status_command.h"

namespace {

int Run(int argc, char** argv) {
  CLI::App app{"WeightBridge: plan, rehearse and watch the transfer of model weights"};
  app.set_version_flag("--version", std::string("wbctl ") + WB_VERSION);
  app.require_subcommand(1);

  wb::ExitCode exit = wb::ExitCode::kDone;
  wb::AddPlanCommand(app, exit);
  wb::AddRehearseCommand(app, exit);
  wb::AddLayoutCommand(app, exit);
  wb::AddStatusCommands(app, exit);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const auto unknown = app.remaining(); app.get_subcommands().empty() && !unknown.empty()) {
      std::cerr << "wbctl: " << unknown.front() << " is no command\n";
    }
    const int code = app.exit(error, std::cout, std::cerr);
    return static_cast<int>(code == 0 ? wb::ExitCode::kDone : wb::ExitCode::kUsage);
  }
  return static_cast<int>(exit);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    return static_cast<int>(wb::PrintException(error, std::cerr));
  }
}
