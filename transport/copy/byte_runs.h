#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "planner/base/byte_block.h"

namespace wb {

/// Equal pieces at a constant distance: `count` of them, `step` bytes apart, from the walker's
/// current offset on.
struct PieceRow {
  std::uint64_t count = 0;
  std::uint64_t step = 0;
};

/// Walks the contiguous runs of bytes [begin, end) of a block's packed order. Runs that touch in
/// the buffer are walked as one. Plain value; keeps a pointer to the block, which must outlive it;
/// never allocates.
class ByteRuns {
 public:
  /// `begin` <= `end` <= block.bytes(), and the block has at most 8 dims.
  ByteRuns(const ByteBlock& block, std::uint64_t begin, std::uint64_t end);
  /// Bytes left to walk.
  std::uint64_t left() const { return left_; }
  /// Offset in the buffer of the current run, and how many of its bytes are left.
  std::uint64_t offset() const { return offset_; }
  std::uint64_t run_left() const { return run_left_; }
  /// Steps over `bytes` <= run_left().
  void Advance(std::uint64_t bytes);

  /// How many pieces of `bytes` <= run_left() follow at a constant distance; at least one.
  PieceRow Row(std::uint64_t bytes) const;
  /// Steps over the first `count` pieces of Row(bytes).
  void AdvanceRow(std::uint64_t bytes, std::uint64_t count);

 private:
  /// From the end of a run, to the start of the run `runs` further on.
  void NextRun(std::uint64_t runs);

  const ByteBlock* block_;
  std::size_t ndim_ = 0;   // dims that are left after touching runs were merged
  std::uint64_t run_ = 0;  // bytes of a merged run
  std::uint64_t index_[8] = {};
  std::uint64_t offset_ = 0;
  std::uint64_t run_left_ = 0;
  std::uint64_t left_ = 0;
};

/// One side of a copy: bytes from `begin` on of a block's packed order, inside `memory`.
template <typename Byte>
struct BlockSpan {
  std::span<Byte> memory;
  const ByteBlock& block;
  std::uint64_t begin = 0;
};

/// What becomes of copied bytes: kRead soon by this processor, or kLeft, which lets long runs go
/// past the caches (stream_copy.h; the caller calls EndStreaming).
enum class CopiedFor : std::uint8_t { kRead, kLeft };

/// Copies `bytes` of packed order from one block to another, run by run, with nothing in between.
/// The caller has checked that both ranges lie inside their blocks, and the blocks inside their
/// memories; the memories do not overlap.
void CopyRuns(BlockSpan<const std::byte> from,
              BlockSpan<std::byte> to,
              std::uint64_t bytes,
              CopiedFor use = CopiedFor::kRead);

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
