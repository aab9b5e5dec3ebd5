#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "transport/ucx/ucx_handles.h"

namespace wb {

struct UcxStackOptions {
  std::string interface;  // of the network; UCX's listener lives on it
  bool shm = false;       // offer shared memory to peers of this host as well
};

/// One UCP context and worker on one network interface, with every setting that matters pinned.
///
/// A process has one of them that connects: UCX 1.13 looks its handlers up by descriptor, over all
/// workers, and where several open and close connections at once it may abort on another's
/// ("handler->async == async" in async.c, seen with three).
struct UcxStack {
  // Destroyed bottom-up: the worker before its context.
  UcpContextHandle context;
  UcpWorkerHandle worker;
  int wakeup_fd = -1;  // the worker's
  // What payloads are cut into, as found after creation.
  std::uint64_t tcp_segment_bytes = 0;
  std::uint64_t shm_segment_bytes = 0;  // 0 without shared memory
};

/// Payloads from this size on are announced and pulled; below it they travel with their header.
inline constexpr std::uint64_t kRendezvousBytes = std::uint64_t{64} << 10;

/// FAILED_PRECONDITION names UCX_* variables in the environment, or a setting that UCX took without
/// applying it.
///
/// With shared memory the transports are tcp and posix: UCX's listener refuses to run without the
/// network's own transport. Endpoints to processes of this host then choose posix for messages,
/// others tcp; UcxEndpoints checks each, so that neither is taken for the other. sysv is left out
/// (one transport to pin and check) and so is cma, which UCX drops where the death of peers is to
/// be told.
absl::StatusOr<UcxStack> OpenUcxStack(const UcxStackOptions& options);

}  // namespace wb
