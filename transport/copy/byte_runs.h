#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "planner/base/byte_block.h"

namespace wb {

/// Walks the contiguous runs of bytes [begin, end) of a block's packed order. Plain value; no
/// allocation after construction.
class ByteRuns {
 public:
  ByteRuns(const ByteBlock& block, std::uint64_t begin, std::uint64_t end);
  /// Bytes left to walk.
  std::uint64_t left() const { return left_; }
  /// Offset in the buffer of the current run, and how many of its bytes are left.
  std::uint64_t offset() const { return offset_; }
  std::uint64_t run_left() const { return run_left_; }
  /// Steps over `bytes` <= run_left().
  void Advance(std::uint64_t bytes);

 private:
  const ByteBlock* block_;
  std::uint64_t index_[8] = {};
  std::uint64_t offset_ = 0;
  std::uint64_t run_left_ = 0;
  std::uint64_t left_ = 0;
};

/// Copies the packed range [begin, begin + packed.size()) of `block` in `memory` to `packed`.
/// The caller has checked that the block lies inside `memory`.
void Gather(std::span<const std::byte> memory,
            const ByteBlock& block,
            std::uint64_t begin,
            std::span<std::byte> packed);

/// The way back: `packed` to [begin, begin + packed.size()) of `block` in `memory`.
void Scatter(std::span<const std::byte> packed,
             const ByteBlock& block,
             std::uint64_t begin,
             std::span<std::byte> memory);

/// Bytes from the start of the buffer to one past the block's last byte; 0 for an empty block.
[[nodiscard]] std::uint64_t EndOffset(const ByteBlock& block);

}  // namespace wb
