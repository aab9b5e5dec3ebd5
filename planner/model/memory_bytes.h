#pragma once

#include <cstdint>

#include "planner/model/registration.h"

namespace wb {

/// What a registration takes in memory, about: its parts with what they have allocated.
[[nodiscard]] std::uint64_t MemoryBytes(const Registration& registration);

}  // namespace wb
