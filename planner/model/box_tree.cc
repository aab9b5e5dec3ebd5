#include "planner/model/box_tree.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace wb {
namespace {

// Boxes in a leaf: below this, testing each is quicker than going down.
constexpr std::uint32_t kLeafBoxes = 6;
// Nodes that wait to be visited: one a level, and a tree over 2^32 boxes has fewer levels.
constexpr std::size_t kMaxLevels = 64;

bool Meets(const Index& lo, const Index& hi, const Box& box) {
  for (std::size_t dim = 0; dim < lo.size(); ++dim) {
    if (lo[dim] >= box.hi()[dim] || box.lo()[dim] >= hi[dim]) return false;
  }
  return true;
}

}  // namespace

bool Meet(const Box& a, const Box& b) {
  return Meets(a.lo(), a.hi(), b);
}

BoxTree::BoxTree(std::span<const Box> boxes) : boxes_(boxes), order_(boxes.size()) {
  std::iota(order_.begin(), order_.end(), 0U);
  if (!boxes_.empty()) Build(0, static_cast<std::uint32_t>(boxes_.size()));
}

BoxTree::Node BoxTree::Bound(std::uint32_t begin, std::uint32_t end) const {
  const Box& first = boxes_[order_[begin]];
  Node node{first.lo(), first.hi(), begin, end, 0};
  for (std::uint32_t i = begin + 1; i < end; ++i) {
    const Box& box = boxes_[order_[i]];
    for (std::size_t dim = 0; dim < node.lo.size(); ++dim) {
      node.lo[dim] = std::min(node.lo[dim], box.lo()[dim]);
      node.hi[dim] = std::max(node.hi[dim], box.hi()[dim]);
    }
  }
  return node;
}

// Halves along the dimension in which the boxes begin farthest apart.
void BoxTree::Build(std::uint32_t begin, std::uint32_t end) {
  const std::size_t self = nodes_.size();
  nodes_.push_back(Bound(begin, end));
  if (end - begin <= kLeafBoxes) return;
  std::size_t widest = 0;
  std::int64_t widest_spread = -1;
  for (std::size_t dim = 0; dim < nodes_[self].lo.size(); ++dim) {
    std::int64_t last = 0;
    for (std::uint32_t i = begin; i < end; ++i) last = std::max(last, boxes_[order_[i]].lo()[dim]);
    const std::int64_t spread = last - nodes_[self].lo[dim];
    if (spread > widest_spread) std::tie(widest, widest_spread) = std::pair(dim, spread);
  }
  const std::uint32_t middle = begin + (end - begin) / 2;
  std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                   [&](std::uint32_t a, std::uint32_t b) {
                     return std::pair(boxes_[a].lo()[widest], a) <
                            std::pair(boxes_[b].lo()[widest], b);
                   });
  Build(begin, middle);
  nodes_[self].upper = static_cast<std::uint32_t>(nodes_.size());
  Build(middle, end);
}

void BoxTree::Visit(const Box& box, absl::FunctionRef<bool(std::size_t)> visit) const {
  if (nodes_.empty()) return;
  std::array<std::uint32_t, kMaxLevels> waiting{};
  std::size_t count = 1;
  while (count > 0) {
    const std::uint32_t at = waiting[--count];
    const Node& node = nodes_[at];
    if (!Meets(node.lo, node.hi, box)) continue;
    if (node.upper != 0) {
      waiting[count++] = node.upper;
      waiting[count++] = at + 1;
      continue;
    }
    for (std::uint32_t i = node.begin; i < node.end; ++i) {
      if (Meet(boxes_[order_[i]], box) && !visit(order_[i])) return;
    }
  }
}

std::vector<std::uint32_t> BoxTree::Meeting(const Box& box) const {
  std::vector<std::uint32_t> found;
  Visit(box, [&](std::size_t index) {
    found.push_back(static_cast<std::uint32_t>(index));
    return true;
  });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace wb
