#include "proto/door/storage_block.h"

#include <algorithm>
#include <optional>

#include "planner/base/checked_math.h"
#include "proto/door/strided.h"

namespace wb {
namespace {

// Dimensions of extent 1 take no part.
void AddDim(StorageBlock& block, std::int64_t extent, std::int64_t stride, std::size_t dim) {
  if (extent <= 1) return;
  block.dims.push_back({static_cast<std::uint64_t>(stride) * block.element_bytes,
                        static_cast<std::uint64_t>(extent), dim});
}

void Finish(StorageBlock& block, std::uint64_t offset) {
  std::sort(block.dims.begin(), block.dims.end(),
            [](const StorageBlock::Dim& a, const StorageBlock::Dim& b) {
              return a.stride_bytes > b.stride_bytes;
            });
  block.begin = offset;
  block.end = offset + block.element_bytes;
  for (const StorageBlock::Dim& dim : block.dims) block.end += (dim.extent - 1) * dim.stride_bytes;
}

}  // namespace

StorageBlock StorageBlock::OfPiece(const Layout& layout, const Piece& piece) {
  StorageBlock block;
  block.piece = &piece;
  block.buffer = piece.buffer;
  block.param = piece.param;
  block.element_bytes = static_cast<std::uint64_t>(DtypeBytes(layout.params[piece.param].dtype));
  for (std::size_t dim = 0; dim < piece.strides.size(); ++dim) {
    AddDim(block, piece.box.extent(static_cast<int>(dim)), piece.strides[dim], dim);
  }
  Finish(block, piece.offset_bytes);
  return block;
}

StorageBlock StorageBlock::OfLocalParam(const Layout& layout, std::uint32_t param) {
  const Param& local = layout.params[param];
  StorageBlock block;
  block.buffer = local.buffer;
  block.param = param;
  block.element_bytes = static_cast<std::uint64_t>(DtypeBytes(local.dtype));
  for (std::size_t dim = 0; dim < local.shape.size(); ++dim) {
    AddDim(block, local.shape[dim], local.strides[dim], dim);
  }
  Finish(block, local.offset_bytes);
  return block;
}

Index ElementAt(const StorageBlock& block, std::uint64_t address) {
  Index element = block.piece->box.lo();
  std::uint64_t rest = address - block.begin;
  for (const StorageBlock::Dim& dim : block.dims) {
    element[dim.tensor_dim] += static_cast<std::int64_t>(rest / dim.stride_bytes);
    rest %= dim.stride_bytes;
  }
  element.push_back(static_cast<std::int64_t>(rest));
  return element;
}

bool ShareElements(const StorageBlock& a, const StorageBlock& b) {
  const Box& box_a = a.piece->box;
  const Box& box_b = b.piece->box;
  if (a.piece->tensor != b.piece->tensor || a.element_bytes != b.element_bytes) return false;
  if (!Intersect(box_a, box_b).has_value()) return false;
  // One affine map from the tensor's indices to addresses, over the smallest box around both.
  Index extents;
  Index strides;
  for (int dim = 0; dim < box_a.ndim(); ++dim) {
    const auto at = static_cast<std::size_t>(dim);
    const std::int64_t stride_a = a.piece->strides[at];
    const std::int64_t stride_b = b.piece->strides[at];
    const bool both = box_a.extent(dim) > 1 && box_b.extent(dim) > 1;
    if (both && stride_a != stride_b) return false;
    extents.push_back(std::max(box_a.hi()[at], box_b.hi()[at]) -
                      std::min(box_a.lo()[at], box_b.lo()[at]));
    strides.push_back(box_a.extent(dim) > 1 ? stride_a : stride_b);
  }
  const std::optional<std::int64_t> span = SpanElements(extents, strides);
  if (!span.has_value() || NestingFault(extents, strides).has_value()) return false;
  if (!CheckedMul(*span, static_cast<std::int64_t>(a.element_bytes)).ok()) return false;
  // From here on every difference of addresses fits.
  std::int64_t elements_apart = 0;
  for (std::size_t dim = 0; dim < strides.size(); ++dim) {
    elements_apart += (box_b.lo()[dim] - box_a.lo()[dim]) * strides[dim];
  }
  return static_cast<std::int64_t>(b.begin - a.begin) ==
         elements_apart * static_cast<std::int64_t>(a.element_bytes);
}

RunCursor::RunCursor(const StorageBlock& block)
    : block_(&block),
      begin_(block.begin),
      run_bytes_(block.element_bytes),
      outer_(block.dims.size()) {
  while (outer_ > 0 && block.dims[outer_ - 1].stride_bytes == run_bytes_) {
    --outer_;
    run_bytes_ *= block.dims[outer_].extent;
  }
  index_.resize(outer_, 0);
}

bool RunCursor::Next() {
  for (std::size_t level = outer_; level-- > 0;) {
    const StorageBlock::Dim& dim = block_->dims[level];
    begin_ += dim.stride_bytes;
    if (++index_[level] < dim.extent) return true;
    begin_ -= dim.extent * dim.stride_bytes;
    index_[level] = 0;
  }
  return false;
}

}  // namespace wb
