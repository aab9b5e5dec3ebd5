#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace wb {

/// A number that two processes share exactly when UCX's shared memory connects them: the same boot
/// of the same kernel, the same IPC namespace and the same PID namespace (memory is attached
/// through /proc/PID/fd). Never 0. Containers of one host have different numbers unless they share
/// both namespaces (Kubernetes: hostIPC and hostPID, or one pod with a shared PID namespace).
absl::StatusOr<std::uint64_t> HostIdentity();

}  // namespace wb
