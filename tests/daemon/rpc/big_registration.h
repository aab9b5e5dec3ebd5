#pragma once

#include <string>

#include "daemon/state/cluster_messages.h"
#include "planner/model/registration.h"

namespace wb::test {

/// A rollout's registration of about a kilobyte a tensor on the wire.
[[nodiscard]] Registration BigRegistration(int tensors);

/// What a daemon says of it, as rank 0 of 1 of `group`; the session's digits are the last of the
/// group's name.
[[nodiscard]] RegisterWorker WorkerOf(const std::string& group, Registration registration);

}  // namespace wb::test
