#pragma once

#include <string>

#include "planner/model/ids.h"
#include "planner/model/layout.h"

namespace wb {

// How texts show values of the model. Pure.

/// "TRAINER" or "ROLLOUT", as layout files say.
[[nodiscard]] const char* RoleName(Role role);

/// Dtype and shape: "BF16 [16,2]".
[[nodiscard]] std::string Describe(const Tensor& tensor);

}  // namespace wb
