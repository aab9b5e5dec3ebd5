#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace wb::test {

/// Open descriptors of this process.
inline std::ptrdiff_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

}  // namespace wb::test
