#pragma once

#include <map>
#include <string>

#include "planner/model/layout.h"

namespace wb {

/// Tensors of which some trainer holds the same box in the same bytes (tied tensors) can only hold
/// the same elements. For each but the first of such a class, by name: tensor -> the first.
/// A rehearsal fills and checks a tensor that is named here as the one it is named with.
[[nodiscard]] std::map<std::string, std::string> SameStorageNames(const Job& job);

}  // namespace wb
