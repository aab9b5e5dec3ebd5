#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/model/plan.h"

namespace wb {

/// A slice that a worker gets through its NIC, if it gets it for itself.
struct Crossing {
  std::uint32_t slice = 0;      // index into Plan::slices
  std::uint32_t pool = 0;       // that it comes from
  std::uint32_t wanted_by = 0;  // index into the list of demands
};

/// The crossings of all demands of a list (indices into Plan::demands), ordered by source box, then
/// box, then who wants them.
[[nodiscard]] std::vector<Crossing> CrossingsOf(const Plan& plan,
                                                std::span<const std::uint32_t> demands);

/// Runs of ordered crossings of one source box, or of one box of one source.
[[nodiscard]] std::vector<std::span<const Crossing>> BySource(const Plan& plan,
                                                              std::span<const Crossing> crossings);
[[nodiscard]] std::vector<std::span<const Crossing>> ByBox(const Plan& plan,
                                                           std::span<const Crossing> crossings);

}  // namespace wb
