#include "planner/lower/piece_block.h"

#include <algorithm>
#include <cstddef>

namespace wb {

ByteBlock BlockOf(const Piece& piece, const Box& box, std::uint64_t element_bytes) {
  ByteBlock block{piece.offset_bytes, element_bytes, {}};
  // From the innermost dimension outwards; `dims` is reversed at the end.
  for (int dim = box.ndim() - 1; dim >= 0; --dim) {
    const auto d = static_cast<std::size_t>(dim);
    const std::uint64_t stride = static_cast<std::uint64_t>(piece.strides[d]) * element_bytes;
    const auto extent = static_cast<std::uint64_t>(box.extent(dim));
    block.offset += static_cast<std::uint64_t>(box.lo()[d] - piece.box.lo()[d]) * stride;
    if (extent == 1) continue;
    if (block.dims.empty() && stride == block.run_bytes) {
      block.run_bytes *= extent;
    } else if (!block.dims.empty() &&
               block.dims.back().stride_bytes * block.dims.back().extent == stride) {
      block.dims.back().extent *= extent;
    } else {
      block.dims.push_back({extent, stride});
    }
  }
  std::reverse(block.dims.begin(), block.dims.end());
  return block;
}

bool Merge(ByteBlock& block, const ByteBlock& next) {
  if (!block.contiguous() || !next.contiguous()) return false;
  if (next.offset != block.offset + block.run_bytes) return false;
  block.run_bytes += next.run_bytes;
  return true;
}

}  // namespace wb
