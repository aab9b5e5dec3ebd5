#pragma once

#include "daemon/daemon.h"

namespace wb {

/// The program weightbridged: reads its configuration, starts, tells the service manager that it is
/// ready, and drains at SIGTERM or SIGINT. Returns the exit code, as wbctl's: 0 done, 1 failed,
/// 2 configuration refused, 3 usage. Called once, by main, before any thread exists.
int RunDaemon(int argc, char** argv, const DaemonSeams& seams = {});

}  // namespace wb
