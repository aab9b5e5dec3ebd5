#pragma once

#include <cstdint>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace wb {

/// What a process takes of the machine, by /proc: what grows from version to version is a leak.
struct Footprint {
  std::uint64_t rss_anon_bytes = 0;  // memory of its own, without what it shares
  std::uint64_t descriptors = 0;
  std::uint64_t mappings = 0;  // of files and shared memory; heaps and stacks are in rss_anon_bytes
};

/// NOT_FOUND when there is no such process, or it is not ours to look at.
[[nodiscard]] absl::StatusOr<Footprint> FootprintOf(pid_t pid);

}  // namespace wb
