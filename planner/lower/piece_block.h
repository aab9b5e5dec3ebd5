#pragma once

#include "planner/base/byte_block.h"
#include "planner/model/layout.h"

namespace wb {

/// The bytes of `box` in the buffer of `piece`, packed row-major over the box: dimensions of extent
/// 1 are gone, and those that lie one after the other in memory are one, so that `run_bytes` is the
/// longest run there is. `box` lies inside the piece's box.
[[nodiscard]] ByteBlock BlockOf(const Piece& piece, const Box& box, std::uint64_t element_bytes);

/// Appends `next` to `block` when the two are one run: `next` starts where `block` ends. False, and
/// nothing changed, otherwise.
[[nodiscard]] bool Merge(ByteBlock& block, const ByteBlock& next);

}  // namespace wb
