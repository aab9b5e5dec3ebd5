#pragma once

#include <string>

#include "absl/status/status.h"

namespace wb {

/// Tells the service manager at `socket` (the value of $NOTIFY_SOCKET: a path, or an abstract name
/// after '@') `state`, lines of NAME=VALUE as sd_notify(3) sends them. One datagram; no library.
/// Never waits: UNAVAILABLE when the manager does not read what it has been told.
[[nodiscard]] absl::Status NotifyServiceManager(const std::string& socket,
                                                const std::string& state);

}  // namespace wb
