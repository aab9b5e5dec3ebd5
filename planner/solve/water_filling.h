#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wb {

/// What each of some vessels gets when `bytes` are poured so that the lowest level comes out as
/// high as it can: the lower ones are filled up to one level, to within a byte. The sum of all
/// levels and `bytes` fits 64 bits; there is a vessel.
[[nodiscard]] std::vector<std::uint64_t> Pour(std::span<const std::uint64_t> levels,
                                              std::uint64_t bytes);

/// Whether of any two sets one holds the other or they have no member in common. Members are unique
/// in a set and below `members`.
[[nodiscard]] bool IsLaminar(std::span<const std::span<const std::uint32_t>> sets,
                             std::size_t members);

}  // namespace wb
