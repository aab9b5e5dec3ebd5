#pragma once

#include <algorithm>

#include <sys/resource.h>

namespace wb {

/// Lets this process, and those it starts, have as many descriptors as the system allows it without
/// privilege, at most 2^20: RLIMIT_NOFILE's soft limit, 1024 in most shells, is for programs that
/// use select(2). A worker's buffer is a descriptor, and so is a connection. Once, at the start.
inline void RaiseDescriptorLimit() {
  constexpr rlim_t kMost = rlim_t{1} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;  // what fails later for want of them says so
  const rlim_t wanted = std::min(limit.rlim_max, kMost);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace wb
