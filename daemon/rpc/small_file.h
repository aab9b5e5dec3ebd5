#pragma once

#include <cstddef>
#include <string>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace wb {

/// A file of a configuration, as it was read.
struct SmallFile {
  std::string text;
  mode_t mode = 0;  // its permissions
};

/// Reads it whole; never waits. INVALID_ARGUMENT, to be read after the path, where it cannot be
/// read
/// ("cannot be read: Permission denied"), is a folder, a FIFO or a device, or has more than
/// `most_bytes`.
[[nodiscard]] absl::StatusOr<SmallFile> ReadSmallFile(const std::string& path,
                                                      std::size_t most_bytes);

}  // namespace wb
