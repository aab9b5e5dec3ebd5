#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "transport/ucx/ucx_handles.h"

namespace wb {

/// One UCP context and worker on one network interface, with every setting that matters pinned.
struct UcxStack {
  // Destroyed bottom-up: the worker before its context.
  UcpContextHandle context;
  UcpWorkerHandle worker;
  int wakeup_fd = -1;  // the worker's
};

/// Payloads from this size on are announced and pulled; below it they travel with their header.
inline constexpr std::uint64_t kRendezvousBytes = std::uint64_t{64} << 10;

/// FAILED_PRECONDITION names UCX_* variables in the environment, or a setting that UCX took without
/// applying it.
absl::StatusOr<UcxStack> OpenUcxStack(const std::string& interface);

}  // namespace wb
