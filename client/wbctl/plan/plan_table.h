#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// "17 B", "1.5 KiB", "70.4 GiB": at most four digits, for people.
[[nodiscard]] std::string ReadableBytes(std::uint64_t bytes);

/// Writes a plan for people: what moves, what the fullest NICs carry against the bound, sources
/// that nobody wants and, unless `summary`, the pairs of workers that exchange most.
void WritePlanTable(const Job& job, const Plan& plan, bool summary, std::ostream& out);

}  // namespace wb
