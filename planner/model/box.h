#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

namespace wb {

/// The largest number of dimensions of a tensor or param.
inline constexpr int kMaxNdim = 8;

/// One number per dimension: a point, a shape or strides, in elements.
using Index = absl::InlinedVector<std::int64_t, 4>;

/// A half-open hyperrectangle [lo, hi) in a tensor's index space.
///
/// Invariant: lo and hi have equal length 1..kMaxNdim, 0 <= lo[d] < hi[d], and the number of
/// elements fits 64 bits. So an empty box cannot be represented; "no overlap" is std::nullopt.
class Box {
 public:
  /// INVALID_ARGUMENT naming the dimension and its values when the invariant would not hold.
  static absl::StatusOr<Box> Create(Index lo, Index hi);

  int ndim() const { return static_cast<int>(lo_.size()); }
  const Index& lo() const { return lo_; }
  const Index& hi() const { return hi_; }
  std::int64_t extent(int dim) const {
    return hi_[static_cast<std::size_t>(dim)] - lo_[static_cast<std::size_t>(dim)];
  }
  /// Number of elements; >= 1.
  std::int64_t elements() const;
  /// "[0,0]..[8,2]".
  std::string ToString() const;

  friend bool operator==(const Box&, const Box&) = default;
  // Spelled out: Index has == and < but no <=>.
  friend std::strong_ordering operator<=>(const Box&, const Box&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Box& box) {
    return H::combine(std::move(h), box.lo_, box.hi_);
  }

 private:
  friend std::optional<Box> Intersect(const Box& a, const Box& b);
  friend std::pair<Box, Box> Split(const Box& box, int dim, std::int64_t at);
  friend std::optional<Box> Join(const Box& a, const Box& b);
  Box(Index lo, Index hi) : lo_(std::move(lo)), hi_(std::move(hi)) {}
  Index lo_;
  Index hi_;
};

/// The elements in both boxes; std::nullopt when there are none. Both have the same ndim.
[[nodiscard]] std::optional<Box> Intersect(const Box& a, const Box& b);
/// Whether every element of `inner` is in `outer`. Both have the same ndim.
[[nodiscard]] bool Contains(const Box& outer, const Box& inner);
/// The parts below and from index `at` of dimension `dim`; lo[dim] < at < hi[dim].
[[nodiscard]] std::pair<Box, Box> Split(const Box& box, int dim, std::int64_t at);
/// One box with exactly the elements of both, when they touch along one dimension and agree in
/// all others; std::nullopt otherwise.
[[nodiscard]] std::optional<Box> Join(const Box& a, const Box& b);

}  // namespace wb
