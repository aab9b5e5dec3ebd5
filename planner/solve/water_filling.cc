#include "planner/solve/water_filling.h"

#include <algorithm>
#include <numeric>

namespace wb {

std::vector<std::uint64_t> Pour(std::span<const std::uint64_t> levels, std::uint64_t bytes) {
  std::vector<std::size_t> order(levels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return levels[a] < levels[b]; });
  // The lowest `count` come to `level` with `left` still to pour.
  std::size_t count = 1;
  std::uint64_t level = levels[order.front()];
  std::uint64_t left = bytes;
  for (; count < order.size(); ++count) {
    const std::uint64_t step = levels[order[count]] - level;
    if (step > left / count) break;
    left -= step * count;
    level += step;
  }
  std::vector<std::uint64_t> poured(levels.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    poured[order[i]] = level - levels[order[i]] + left / count + (i < left % count ? 1 : 0);
  }
  return poured;
}

// Smallest first, each set swallows the largest ones so far that its members are in: it must
// swallow them whole.
bool IsLaminar(std::span<const std::span<const std::uint32_t>> sets, std::size_t members) {
  std::vector<std::size_t> order(sets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sets[a].size() < sets[b].size(); });
  constexpr std::size_t kNone = SIZE_MAX;
  std::vector<std::size_t> largest(members, kNone);  // per member: position of the set it is in
  std::vector<std::size_t> seen(order.size(), 0);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::span<const std::uint32_t> set = sets[order[at]];
    for (const std::uint32_t member : set) {
      if (largest[member] != kNone) ++seen[largest[member]];
    }
    for (const std::uint32_t member : set) {
      const std::size_t inner = largest[member];
      if (inner != kNone && inner != at && seen[inner] != sets[order[inner]].size()) return false;
      largest[member] = at;
    }
  }
  return true;
}

}  // namespace wb
