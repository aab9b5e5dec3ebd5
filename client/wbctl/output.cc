#include "client/wbctl/output.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "client/wbctl/json_text.h"

namespace wb {

void AddOutputOption(CLI::App& command, OutputFormat& format) {
  const std::map<std::string, OutputFormat> formats{{"table", OutputFormat::kTable},
                                                    {"json", OutputFormat::kJson}};
  AddChoice(command, "-o,--output", formats, format, "how the result is printed");
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
  for (const Refusal& refusal : refusals) err << refusal.text << '\n';
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Refusal& refusal : refusals) {
      list.push_back({{"kind", refusal.kind},
                      {"tensor", refusal.tensor},
                      {"worker", refusal.worker},
                      {"text", refusal.text}});
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
  err << "wbctl: " << status.message() << '\n';
  return ExitCode::kFailed;
}

}  // namespace wb
