#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/model/box.h"

namespace wb {

// Arithmetic of local shapes and strides, in elements, for values that nobody has checked yet:
// nothing here overflows. Extents are >= 0. Stateless.

/// Strides of a dense row-major tensor of that shape (an extent 0 counts as 1); nothing when one
/// does not fit 63 bits.
[[nodiscard]] std::optional<Index> RowMajorStrides(const Index& shape);

/// Elements from the first to the last one, both included; 0 when there are none, nothing when it
/// does not fit 63 bits. Strides are >= 1.
[[nodiscard]] std::optional<std::int64_t> SpanElements(const Index& shape, const Index& strides);

/// Whether strides nest: ordered by stride, each steps over the whole span of the smaller ones
/// (dimensions of extent 1 do not count). Then no two elements share storage, and elements in
/// order of the larger strides first are in order of their addresses. Strides that do not nest
/// are what the door calls self-overlapping. What is wrong is told for the first such dimension.
[[nodiscard]] std::optional<std::string> NestingFault(const Index& shape, const Index& strides);

}  // namespace wb
