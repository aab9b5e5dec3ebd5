#include "proto/door/strided.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "planner/base/checked_math.h"

namespace wb {

std::optional<Index> RowMajorStrides(const Index& shape) {
  Index strides(shape.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = stride;
    const auto next = CheckedMul(stride, std::max<std::int64_t>(shape[dim], 1));
    if (!next.ok()) return std::nullopt;
    stride = *next;
  }
  return strides;
}

std::optional<std::int64_t> SpanElements(const Index& shape, const Index& strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t span = 1;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const auto reach = CheckedMul(shape[dim] - 1, strides[dim]);
    const auto next = reach.ok() ? CheckedAdd(span, *reach) : reach;
    if (!next.ok()) return std::nullopt;
    span = *next;
  }
  return span;
}

std::optional<std::string> NestingFault(const Index& shape, const Index& strides) {
  absl::InlinedVector<std::size_t, 4> order;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] > 1) order.push_back(dim);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  std::int64_t span = 1;
  for (const std::size_t dim : order) {
    if (strides[dim] < span) {
      return absl::StrCat("strides[", dim, "] is ", strides[dim],
                          ", inside the span of the smaller strides, want at least ", span);
    }
    const auto reach = CheckedMul(shape[dim] - 1, strides[dim]);
    const auto next = reach.ok() ? CheckedAdd(span, *reach) : reach;
    if (!next.ok()) return std::nullopt;  // SpanElements tells
    span = *next;
  }
  return std::nullopt;
}

}  // namespace wb
