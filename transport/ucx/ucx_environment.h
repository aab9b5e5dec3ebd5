#pragma once

#include <string>
#include <vector>

namespace wb {

/// Names of the UCX_* variables in this process's environment. They change how UCX behaves, and a
/// user's shell often has some that were meant for MPI; UcxFabric refuses to start while there are
/// any.
[[nodiscard]] std::vector<std::string> InheritedUcxVariables();

/// Removes them and returns their names, for the log. Changes the process's environment: call it
/// early in main, before there is a second thread.
std::vector<std::string> DropInheritedUcxVariables();

/// Sends UCX's own log lines to ours instead of stdout. Once per process; more calls do nothing.
void RouteUcxLog();

}  // namespace wb
