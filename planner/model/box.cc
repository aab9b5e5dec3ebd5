#include "planner/model/box.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/checked_math.h"

namespace wb {

absl::StatusOr<Box> Box::Create(Index lo, Index hi) {
  if (lo.size() != hi.size() || lo.empty() || lo.size() > std::size_t{kMaxNdim}) {
    return absl::InvalidArgumentError(absl::StrCat("box: lo has ", lo.size(),
                                                   " dimensions and hi has ", hi.size(),
                                                   ", want as many of both and 1..", kMaxNdim));
  }
  std::int64_t elements = 1;
  for (std::size_t dim = 0; dim < lo.size(); ++dim) {
    if (lo[dim] < 0 || lo[dim] >= hi[dim]) {
      return absl::InvalidArgumentError(absl::StrCat("box: dimension ", dim, " has lo ", lo[dim],
                                                     " and hi ", hi[dim], ", want 0 <= lo < hi"));
    }
    const absl::StatusOr<std::int64_t> product = CheckedMul(elements, hi[dim] - lo[dim]);
    if (!product.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("box: the number of elements in [", absl::StrJoin(lo, ","), "]..[",
                       absl::StrJoin(hi, ","), "] does not fit 64 bits"));
    }
    elements = *product;
  }
  return Box(std::move(lo), std::move(hi));
}

std::int64_t Box::elements() const {
  std::int64_t elements = 1;
  for (int dim = 0; dim < ndim(); ++dim) elements *= extent(dim);
  return elements;
}

std::string Box::ToString() const {
  return absl::StrCat("[", absl::StrJoin(lo_, ","), "]..[", absl::StrJoin(hi_, ","), "]");
}

std::optional<Box> Intersect(const Box& a, const Box& b) {
  Index lo = a.lo_;
  Index hi = a.hi_;
  for (std::size_t dim = 0; dim < lo.size(); ++dim) {
    lo[dim] = std::max(lo[dim], b.lo_[dim]);
    hi[dim] = std::min(hi[dim], b.hi_[dim]);
    if (lo[dim] >= hi[dim]) return std::nullopt;
  }
  return Box(std::move(lo), std::move(hi));
}

bool Contains(const Box& outer, const Box& inner) {
  for (std::size_t dim = 0; dim < outer.lo().size(); ++dim) {
    if (inner.lo()[dim] < outer.lo()[dim] || inner.hi()[dim] > outer.hi()[dim]) return false;
  }
  return true;
}

std::pair<Box, Box> Split(const Box& box, int dim, std::int64_t at) {
  Box below = box;
  Box above = box;
  below.hi_[static_cast<std::size_t>(dim)] = at;
  above.lo_[static_cast<std::size_t>(dim)] = at;
  return {std::move(below), std::move(above)};
}

std::optional<Box> Join(const Box& a, const Box& b) {
  std::optional<std::size_t> differing;
  for (std::size_t dim = 0; dim < a.lo_.size(); ++dim) {
    if (a.lo_[dim] == b.lo_[dim] && a.hi_[dim] == b.hi_[dim]) continue;
    if (differing.has_value()) return std::nullopt;
    differing = dim;
  }
  if (!differing.has_value()) return std::nullopt;
  const bool touch =
      a.hi_[*differing] == b.lo_[*differing] || b.hi_[*differing] == a.lo_[*differing];
  if (!touch || !CheckedAdd(a.elements(), b.elements()).ok()) return std::nullopt;
  Box both = a;
  both.lo_[*differing] = std::min(a.lo_[*differing], b.lo_[*differing]);
  both.hi_[*differing] = std::max(a.hi_[*differing], b.hi_[*differing]);
  return both;
}

}  // namespace wb
