#pragma once

#include <compare>
#include <cstdint>
#include <utility>

namespace wb {

/// An integer that names one kind of thing. Ids of different tags do not mix: swapping two
/// arguments of different id types does not compile. Immutable value, ordered, hashable.
template <typename Tag, typename Rep = std::uint64_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_ = 0;
};

}  // namespace wb
