#pragma once

#include <cstdint>
#include <exception>
#include <iosfwd>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

#include "client/wbctl/exit_code.h"
#include "planner/model/refusal.h"

namespace wb {

/// How a command prints its result on stdout.
enum class OutputFormat : std::uint8_t { kTable, kJson };

/// Adds an option that takes the names of `values`, and nothing else.
template <typename T>
CLI::Option* AddChoice(CLI::App& command,
                       const char* option,
                       const std::map<std::string, T>& values,
                       T& choice,
                       const char* help) {
  std::string names;
  for (const auto& [name, value] : values) names += (names.empty() ? "" : "|") + name;
  return command
      .add_option_function<std::string>(
          option, [values, &choice](const std::string& name) { choice = values.at(name); }, help)
      ->check([values, names](const std::string& name) {
        return values.count(name) != 0 ? "" : "'" + name + "', want " + names;
      })
      ->option_text(names);
}

/// Adds a flag: it is there or not, and takes no value ("--flag=2" is wrong).
CLI::Option* AddFlag(CLI::App& command, const char* flag, bool& given, const char* help);

/// Refuses an empty path or name, which would be taken for none.
[[nodiscard]] std::string IfEmpty(const std::string& text);

/// Adds `-o,--output table|json` to a subcommand. `format` holds the default before the call.
void AddOutputOption(CLI::App& command, OutputFormat& format);

/// Prints every reason, each as one printable line, on stderr and, for JSON, {"refusals": [...]} on
/// stdout. Returns kRefused.
ExitCode PrintRefusals(const Refusals& refusals, OutputFormat format);

/// The same, on the streams given.
ExitCode PrintRefusals(const Refusals& refusals,
                       OutputFormat format,
                       std::ostream& out,
                       std::ostream& err);

/// The end of a command that has printed its result on `out`: kDone, or kFailed with a line on
/// `err` when not all of it could be written.
ExitCode FinishOutput(std::ostream& out, std::ostream& err);

/// Prints `wbctl: <text>` on stderr. Returns kFailed.
ExitCode PrintFailure(const absl::Status& status);
/// The same, on the stream given.
ExitCode PrintFailure(const absl::Status& status, std::ostream& err);
/// What main does with an exception: only what cannot be foreseen comes so far, as no memory.
ExitCode PrintException(const std::exception& exception, std::ostream& err);

}  // namespace wb
