#pragma once

#include <nlohmann/json.hpp>

#include "client/wbctl/plan/explained_plan.h"

namespace wb {

/// The keys of a summary that say why; README lists them. Sizes are in bytes.
[[nodiscard]] nlohmann::ordered_json ExplanationJson(const ExplainedPlan& explained);

}  // namespace wb
