#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "planner/model/box_tree.h"
#include "planner/model/layout.h"

namespace wb {

/// Finds the pieces of a layout that hold a box. Quick for boxes that come tensor by tensor, as a
/// plan's moves do. The layout's pieces are in order, and it outlives this.
class PieceLookup {
 public:
  explicit PieceLookup(const Layout& layout) : layout_(layout) {}

  /// Indices of the pieces of `tensor` that hold all of `box`, ascending.
  [[nodiscard]] std::vector<std::uint32_t> Holding(TensorId tensor, const Box& box);

 private:
  void Turn(TensorId tensor);

  const Layout& layout_;
  std::optional<TensorId> tensor_;  // the one looked at last; its pieces start at first_
  std::uint32_t first_ = 0;
  std::vector<Box> boxes_;
  std::unique_ptr<const BoxTree> tree_;
};

}  // namespace wb
