#include "planner/lower/piece_lookup.h"

#include <algorithm>

namespace wb {

void PieceLookup::Turn(TensorId tensor) {
  if (tensor_ == tensor) return;
  const auto begin =
      std::partition_point(layout_.pieces.begin(), layout_.pieces.end(),
                           [&](const Piece& piece) { return piece.tensor < tensor; });
  first_ = static_cast<std::uint32_t>(begin - layout_.pieces.begin());
  boxes_.clear();
  for (auto piece = begin; piece != layout_.pieces.end() && piece->tensor == tensor; ++piece) {
    boxes_.push_back(piece->box);
  }
  tree_ = std::make_unique<const BoxTree>(boxes_);
  tensor_ = tensor;
}

std::vector<std::uint32_t> PieceLookup::Holding(TensorId tensor, const Box& box) {
  Turn(tensor);
  if (boxes_.empty() || boxes_.front().ndim() != box.ndim()) return {};
  std::vector<std::uint32_t> holding;
  for (const std::uint32_t i : tree_->Meeting(box)) {
    if (Contains(boxes_[i], box)) holding.push_back(first_ + i);
  }
  return holding;
}

}  // namespace wb
