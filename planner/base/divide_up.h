#pragma once

#include <concepts>

namespace wb {

/// The quotient, rounded up. Cannot overflow; `dividend` is at least 0, `divisor` more than 0.
template <std::integral T>
[[nodiscard]] constexpr T DivideUp(T dividend, T divisor) {
  return dividend / divisor + (dividend % divisor == 0 ? 0 : 1);
}

}  // namespace wb
