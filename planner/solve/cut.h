#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/model/box.h"

namespace wb {

/// A box in which every element is held by the same of some given boxes.
struct Atom {
  Box box;
  std::vector<std::uint32_t> holders;  // indices of the given boxes, ascending, at least one
};

/// Cuts the union of `boxes` along their boundaries into disjoint atoms, ordered by lo: each given
/// box is the union of the atoms that name it. std::nullopt when that takes more than `max_work`
/// looks at a box: boxes that overlap in many dimensions can have exponentially many atoms.
[[nodiscard]] std::optional<std::vector<Atom>> CutIntoAtoms(std::span<const Box> boxes,
                                                            std::size_t max_work);

/// A box of elements of `region` that are in none of `boxes` (which may overlap), or std::nullopt
/// when they cover it. The first one found walking dimension 0 upwards, then the next ones. When
/// that takes more than `max_work` looks at a box, the part of the region under examination.
[[nodiscard]] std::optional<Box> FirstUncovered(const Box& region,
                                                std::span<const Box> boxes,
                                                std::size_t max_work);

/// Work that suffices for `boxes` boxes of any cut that a framework makes, and ends soon for
/// others.
[[nodiscard]] inline std::size_t UsualWork(std::size_t boxes) {
  return 4096 + 256 * boxes;
}

}  // namespace wb
