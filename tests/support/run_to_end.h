#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace wb::test {

/// What a program left that ran to its end.
struct ProgramEnd {
  int exit_code = -1;  // 128 + signal if it was killed; -1 if it could not be run
  bool timed_out = false;
  std::string out;
  std::string err;
};

/// Runs a program with its standard input closed, in a process group of its own, with `environment`
/// ("NAME=VALUE") over ours. Killed with its group at the deadline, and with this process.
[[nodiscard]] ProgramEnd RunToEnd(const std::vector<std::string>& argv,
                                  const std::vector<std::string>& environment,
                                  std::chrono::milliseconds deadline);

}  // namespace wb::test
