#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

#include "planner/model/box.h"

namespace wb {

/// Whether some element is in both boxes. Both have the same ndim.
[[nodiscard]] bool Meet(const Box& a, const Box& b);

/// Which of many boxes have an element in common with a given one. Built in O(n log n); a visit
/// costs O(log n + boxes found) for boxes that hardly overlap, whatever the cut: rows, columns,
/// grids, experts. Immutable; the boxes outlive the tree and all have the same ndim.
class BoxTree {
 public:
  explicit BoxTree(std::span<const Box> boxes);

  /// Calls `visit` with the index of each box that meets `box`, in an order that depends on the
  /// boxes alone, until it returns false.
  void Visit(const Box& box, absl::FunctionRef<bool(std::size_t)> visit) const;
  /// The indices of the boxes that meet `box`, ascending.
  [[nodiscard]] std::vector<std::uint32_t> Meeting(const Box& box) const;

 private:
  // Boxes order_[begin, end) and the range that holds them all. Nodes are in pre-order: the lower
  // half follows its parent, `upper` is the index of the other; 0 for a leaf.
  struct Node {
    Index lo;
    Index hi;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t upper = 0;
  };
  void Build(std::uint32_t begin, std::uint32_t end);
  Node Bound(std::uint32_t begin, std::uint32_t end) const;

  std::span<const Box> boxes_;
  std::vector<std::uint32_t> order_;
  std::vector<Node> nodes_;
};

}  // namespace wb
