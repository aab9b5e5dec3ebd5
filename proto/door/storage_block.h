#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"

#include "planner/model/layout.h"

namespace wb {

/// The bytes of a buffer that one piece of a destination, or one of its local params, occupies.
/// Strides nest (see proto/door/strided.h): runs come in order of their addresses.
/// Plain value; refers to the layout it is made of. Used by the storage door only.
struct StorageBlock {
  struct Dim {
    std::uint64_t stride_bytes = 0;
    std::uint64_t extent = 0;
    std::size_t tensor_dim = 0;
  };

  static StorageBlock OfPiece(const Layout& layout, const Piece& piece);
  static StorageBlock OfLocalParam(const Layout& layout, std::uint32_t param);

  const Piece* piece = nullptr;  // null for a local param
  std::uint32_t buffer = 0;
  std::uint32_t param = 0;
  std::uint64_t begin = 0;  // bytes of the buffer, [begin, end)
  std::uint64_t end = 0;
  std::uint64_t element_bytes = 0;
  absl::InlinedVector<Dim, 4> dims;  // extents > 1, largest stride first
};

/// The tensor's index of the byte at `address`, which is one of the block's; the last number is
/// the byte inside the element. The block is one of a piece.
[[nodiscard]] Index ElementAt(const StorageBlock& block, std::uint64_t address);

/// Whether every byte that both blocks may share is the same byte of the same element, told by
/// arithmetic alone. False may also mean "not told this way". Both are blocks of pieces.
[[nodiscard]] bool ShareElements(const StorageBlock& a, const StorageBlock& b);

/// Walks the contiguous runs of a block, in order of their addresses. Borrows the block.
class RunCursor {
 public:
  explicit RunCursor(const StorageBlock& block);

  const StorageBlock& block() const { return *block_; }
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + run_bytes_; }
  /// False when the run was the last.
  bool Next();

 private:
  const StorageBlock* block_;
  std::uint64_t begin_;
  std::uint64_t run_bytes_;
  std::size_t outer_;  // dims that are not part of a run
  absl::InlinedVector<std::uint64_t, 4> index_;
};

}  // namespace wb
