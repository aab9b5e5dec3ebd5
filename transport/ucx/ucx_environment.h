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

/// Gives the process back what libucs takes when it is loaded: the handlers of SIGSEGV, SIGBUS,
/// SIGFPE and SIGILL, which print a backtrace from within the fault and may wait for a lock that
/// the fault holds, so that the process hangs where it should end and leave a core; and SIGHUP,
/// which raises UCX's log to the contents of every message. As UCX_HANDLE_ERRORS=none would, but
/// for the environment, which is read before main. Call it at the top of main.
void TakeBackUcxSignals();

/// Sends UCX's own log lines to ours instead of stdout. Once per process; more calls do nothing.
void RouteUcxLog();

}  // namespace wb
