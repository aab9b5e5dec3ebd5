#include "proto/door/box_overlaps.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace wb {
namespace {

// So few boxes are compared right away.
constexpr std::size_t kFew = 4;

class OverlapFinder {
 public:
  OverlapFinder(std::span<const Box> boxes,
                StepBudget& budget,
                absl::FunctionRef<bool(std::size_t, std::size_t)> found)
      : boxes_(boxes), budget_(budget), found_(found) {
    for (std::size_t i = 0; i < boxes.size(); ++i) order_.push_back(i);
  }

  bool Run() {
    sets_.emplace_back(0, order_.size());
    while (!sets_.empty() && !stopped_) {
      const auto [begin, end] = sets_.back();
      sets_.pop_back();
      if (end - begin < 2) continue;
      const auto ndim = static_cast<std::uint64_t>(boxes_.front().ndim());
      if (!budget_.Spend((end - begin) * ndim)) return false;
      if (end - begin > kFew && Separate(begin, end)) continue;
      if (!Compare(begin, end)) return false;
    }
    return true;
  }

 private:
  // Splits order_[begin, end) along the first dimension in which the boxes fall apart.
  bool Separate(std::size_t begin, std::size_t end) {
    for (int dim = 0; dim < boxes_.front().ndim(); ++dim) {
      if (SeparateAlong(static_cast<std::size_t>(dim), begin, end)) return true;
    }
    return false;
  }

  bool SeparateAlong(std::size_t dim, std::size_t begin, std::size_t end) {
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(end);
    std::sort(first, last, [&](std::size_t a, std::size_t b) {
      return std::pair(boxes_[a].lo()[dim], a) < std::pair(boxes_[b].lo()[dim], b);
    });
    const std::size_t sets_before = sets_.size();
    std::size_t start = begin;
    std::int64_t reach = boxes_[order_[begin]].hi()[dim];
    for (std::size_t i = begin + 1; i < end; ++i) {
      const Box& box = boxes_[order_[i]];
      if (box.lo()[dim] >= reach) {
        sets_.emplace_back(start, i);
        start = i;
      }
      reach = std::max(reach, box.hi()[dim]);
    }
    if (sets_.size() == sets_before) return false;
    sets_.emplace_back(start, end);
    return true;
  }

  bool Compare(std::size_t begin, std::size_t end) {
    const std::uint64_t count = end - begin;
    for (std::size_t i = begin; i < end && !stopped_; ++i) {
      if (!budget_.Spend(count)) return false;
      for (std::size_t j = i + 1; j < end && !stopped_; ++j) {
        const auto [a, b] = std::minmax(order_[i], order_[j]);
        if (Intersect(boxes_[a], boxes_[b]).has_value()) stopped_ = !found_(a, b);
      }
    }
    return true;
  }

  std::span<const Box> boxes_;
  StepBudget& budget_;
  absl::FunctionRef<bool(std::size_t, std::size_t)> found_;
  std::vector<std::size_t> order_;                         // permuted; a set is a range of it
  std::vector<std::pair<std::size_t, std::size_t>> sets_;  // still to be looked at
  bool stopped_ = false;
};

}  // namespace

bool FindOverlaps(std::span<const Box> boxes,
                  StepBudget& budget,
                  absl::FunctionRef<bool(std::size_t, std::size_t)> found) {
  if (boxes.empty()) return true;
  return OverlapFinder(boxes, budget, found).Run();
}

}  // namespace wb
