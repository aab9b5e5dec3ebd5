#include "client/wbctl/output.h"

#include <iostream>
#include <map>

#include <nlohmann/json.hpp>

namespace wb {

void AddOutputOption(CLI::App& command, OutputFormat& format) {
  static const std::map<std::string, OutputFormat> names{{"table", OutputFormat::kTable},
                                                         {"json", OutputFormat::kJson}};
  command.add_option("-o,--output", format, "table or json")
      ->transform(CLI::CheckedTransformer(names))
      ->option_text("FORMAT");
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
    // Names may hold any bytes a file brought in: replace what is not UTF-8, never throw.
    out << nlohmann::ordered_json{{"refusals", std::move(list)}}.dump(
               2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
        << '\n';
  }
  return ExitCode::kRefused;
}

ExitCode PrintFailure(const absl::Status& status) {
  return PrintFailure(status, std::cerr);
}

ExitCode PrintFailure(const absl::Status& status, std::ostream& err) {
  err << "wbctl: " << status.message() << '\n';
  return ExitCode::kFailed;
}

}  // namespace wb
