#pragma once

#include <cstdint>

namespace wb::test {

/// How often this process has called operator new so far, on all threads. A binary that links
/// allocation_count.cc has its own operator new; what C libraries allocate is not counted. Always 0
/// under a sanitizer.
[[nodiscard]] std::uint64_t AllocationCount();
/// The bytes asked for so far, whether freed since or not: what a piece of code adds is no less
/// than the most it held at once. Likewise 0 under a sanitizer.
[[nodiscard]] std::uint64_t AllocatedBytes();

}  // namespace wb::test
