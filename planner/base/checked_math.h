#pragma once

#include <concepts>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace wb {

/// `a * b`, or OUT_OF_RANGE naming both when the product does not fit the type.
template <std::integral T>
[[nodiscard]] absl::StatusOr<T> CheckedMul(T a, T b) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) {
    return absl::OutOfRangeError(absl::StrCat(a, " * ", b, " does not fit 64 bits"));
  }
  return result;
}

/// `a + b`, or OUT_OF_RANGE naming both when the sum does not fit the type.
template <std::integral T>
[[nodiscard]] absl::StatusOr<T> CheckedAdd(T a, T b) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) {
    return absl::OutOfRangeError(absl::StrCat(a, " + ", b, " does not fit 64 bits"));
  }
  return result;
}

/// Whether [offset, offset + bytes) lies inside [0, size). Cannot overflow.
template <std::unsigned_integral T>
[[nodiscard]] constexpr bool InRange(T offset, T bytes, T size) {
  return offset <= size && bytes <= size - offset;
}

}  // namespace wb
