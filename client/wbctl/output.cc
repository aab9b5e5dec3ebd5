#include "client/wbctl/output.h"

#include <iostream>
#include <new>

#include <nlohmann/json.hpp>

#include "client/wbctl/json_text.h"
#include "planner/base/one_line.h"

namespace wb {

void AddOutputOption(CLI::App& command, OutputFormat& format) {
  const std::map<std::string, OutputFormat> formats{{"table", OutputFormat::kTable},
                                                    {"json", OutputFormat::kJson}};
  AddChoice(command, "-o,--output", formats, format, "how the result is printed");
}

CLI::Option* AddFlag(CLI::App& command, const char* flag, bool& given, const char* help) {
  return command.add_flag(flag, given, help)->disable_flag_override();
}

std::string IfEmpty(const std::string& text) {
  return text.empty() ? "is empty, want a name" : "";
}

ExitCode PrintRefusals(const Refusals& refusals, OutputFormat format) {
  return PrintRefusals(refusals, format, std::cout, std::cerr);
}

ExitCode PrintRefusals(const Refusals& refusals,
                       OutputFormat format,
                       std::ostream& out,
                       std::ostream& err) {
  for (const Refusal& refusal : refusals) err << OneLine(refusal.text) << '\n';
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Refusal& refusal : refusals) {
      list.push_back({{"kind", refusal.kind},
                      {"tensor", refusal.tensor},
                      {"worker", refusal.worker},
                      {"text", OneLine(refusal.text)}});
    }
    out << JsonText(nlohmann::ordered_json{{"refusals", std::move(list)}}, 2) << '\n';
  }
  return ExitCode::kRefused;
}

ExitCode FinishOutput(std::ostream& out, std::ostream& err) {
  out.flush();
  return out ? ExitCode::kDone
             : PrintFailure(absl::DataLossError("cannot write to standard output"), err);
}

ExitCode PrintFailure(const absl::Status& status) {
  return PrintFailure(status, std::cerr);
}

ExitCode PrintFailure(const absl::Status& status, std::ostream& err) {
  err << "wbctl: " << OneLine({status.message().data(), status.message().size()}) << '\n';
  return ExitCode::kFailed;
}

ExitCode PrintException(const std::exception& exception, std::ostream& err) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return PrintFailure(absl::ResourceExhaustedError("RESOURCE_EXHAUSTED: no memory left"), err);
  }
  return PrintFailure(absl::InternalError(exception.what()), err);
}

}  // namespace wb
