#pragma once

#include <cstdint>
#include <functional>

#include "planner/model/layout.h"

namespace wb {

/// Elements that follow each other in a tensor's row-major order, and where they lie in a buffer.
struct ElementRun {
  std::uint64_t begin = 0;   // row-major index in the tensor
  std::uint64_t count = 0;   // elements
  std::uint64_t offset = 0;  // bytes, of the first element in the buffer
  std::uint64_t stride = 0;  // bytes, from one element to the next in the buffer
  friend bool operator==(const ElementRun&, const ElementRun&) = default;
};

/// Longest run that ForEachRun gives, in elements: what is worked on at a time stays in cache.
inline constexpr std::uint64_t kMaxRunElements = 8192;

/// Gives every element of the piece exactly once, in row-major order, in runs as long as they come.
void ForEachRun(const Tensor& tensor,
                const Piece& piece,
                const std::function<void(const ElementRun&)>& visit);

}  // namespace wb
