#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb::test {

using Bytes = std::vector<unsigned char>;
/// One worker's memory: a stretch of bytes per buffer of its layout.
using Memory = std::vector<Bytes>;
/// What an element holds, in its low bytes: by tensor, index and row-major linear index.
using ElementValue = std::function<std::uint64_t(const Tensor&, const Index&, std::uint64_t)>;

/// What memory holds before anything is written.
inline constexpr unsigned char kHole = 0xA5;

/// A value that tells tensors and indices apart.
[[nodiscard]] std::uint64_t HashValue(const Tensor& tensor, const Index& at, std::uint64_t linear);

/// The layout's memory with every element that a piece names holding its value, holes elsewhere.
[[nodiscard]] Memory Filled(const Job& job, const Layout& layout, const ElementValue& value);

/// Executes a plan byte by byte, as a slow and simple executor would: trainers are filled, every
/// (src, dst) stream is lowered at both ends and its chunks are carried over. The memory of every
/// worker afterwards. Throws std::runtime_error when the ends do not agree on the chunks.
[[nodiscard]] std::vector<Memory> Execute(const Job& job,
                                          const Plan& plan,
                                          std::uint64_t chunk_bytes,
                                          const ElementValue& value);

/// Calls `visit` with every index in the box, row-major.
template <typename Visit>
void ForEachIndex(const Box& box, Visit visit) {
  Index at = box.lo();
  while (true) {
    visit(at);
    std::size_t dim = at.size();
    while (dim-- > 0) {
      if (++at[dim] < box.hi()[dim]) break;
      at[dim] = box.lo()[dim];
      if (dim == 0) return;
    }
  }
}

}  // namespace wb::test
