#pragma once

#include <ucs/type/status.h>

#include "absl/status/status.h"

namespace wb {

/// UCX's status as ours, its text after `what`. OK stays OK; a peer that is gone is UNAVAILABLE.
[[nodiscard]] absl::Status FromUcs(ucs_status_t status, const char* what);

}  // namespace wb
