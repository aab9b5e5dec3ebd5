#pragma once

#include <cstdint>

namespace wb {

/// What wbctl tells its caller by its exit status.
enum class ExitCode : std::uint8_t {
  kDone = 0,
  kFailed = 1,
  kRefused = 2,  // the input is refused; every reason is on stderr
  kUsage = 3,
  kDiffers = 4,  // bytes differ from what was wanted
};

}  // namespace wb
