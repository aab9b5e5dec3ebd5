#pragma once

#include <unistd.h>

#include "planner/base/unique_handle.h"

namespace wb {

struct FdTraits {
  using Raw = int;
  static constexpr Raw kNull = -1;
  static void Close(Raw fd) noexcept { ::close(fd); }
};

/// Owns a file descriptor.
using FdHandle = UniqueHandle<FdTraits>;

}  // namespace wb
