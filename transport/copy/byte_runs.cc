#include "transport/copy/byte_runs.h"

#include <algorithm>
#include <cstring>

#include "transport/copy/stream_copy.h"

namespace wb {
namespace {

/// Steps of one side of a row copy.
struct Steps {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

constexpr std::uint64_t kAheadBytes = 4096;  // that are fetched before they are copied
constexpr std::uint64_t kLongBytes = 16384;  // pieces whose beginning, not foreseen, costs nothing
constexpr std::uint64_t kLineBytes = 64;

void Prefetch(const std::byte* from, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(from + at);
}

// A piece of a size that the compiler knows is a load and a store; memcpy allows any alignment.
template <std::size_t kBytes>
void CopyFixed(const std::byte* from, std::byte* to, Steps steps, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * steps.to, from + i * steps.from, kBytes);
  }
}

void CopyRow(
    const std::byte* from, std::byte* to, Steps steps, std::uint64_t bytes, std::uint64_t count) {
  switch (bytes) {
    case 1:
      return CopyFixed<1>(from, to, steps, count);
    case 2:
      return CopyFixed<2>(from, to, steps, count);
    case 4:
      return CopyFixed<4>(from, to, steps, count);
    case 8:
      return CopyFixed<8>(from, to, steps, count);
    case 16:
      return CopyFixed<16>(from, to, steps, count);
    case 32:
      return CopyFixed<32>(from, to, steps, count);
    case 64:
      return CopyFixed<64>(from, to, steps, count);
    default:
      break;
  }
  // Processors foresee reads that follow each other, not pieces at a distance.
  const bool foreseen = steps.from == bytes || bytes < kLineBytes || bytes >= kLongBytes;
  const std::uint64_t ahead = foreseen ? count : kAheadBytes / bytes + 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (ahead < count - i) Prefetch(from + (i + ahead) * steps.from, bytes);
    std::memcpy(to + i * steps.to, from + i * steps.from, bytes);
  }
}

/// Whether a row goes past the caches: reads have to be in sequence to keep up with such writes.
bool Streams(CopiedFor use, std::uint64_t bytes, std::uint64_t step) {
  if (use == CopiedFor::kRead || bytes < kLeastStreamedBytes) return false;
  return step == bytes || bytes >= kLongBytes;
}

void StreamRow(
    const std::byte* from, std::byte* to, Steps steps, std::uint64_t bytes, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    StreamCopy(to + i * steps.to, from + i * steps.from, bytes);
  }
}

ByteBlock Contiguous(std::uint64_t bytes) {
  ByteBlock block;
  block.run_bytes = bytes;
  return block;
}

}  // namespace

ByteRuns::ByteRuns(const ByteBlock& block, std::uint64_t begin, std::uint64_t end)
    : block_(&block), ndim_(block.dims.size()), run_(block.run_bytes), left_(end - begin) {
  while (ndim_ > 0) {
    const ByteDim& inner = block.dims[ndim_ - 1];
    if (inner.extent != 1 && inner.stride_bytes != run_) break;
    run_ *= inner.extent;
    --ndim_;
  }
  if (left_ == 0) return;
  std::uint64_t runs = begin / run_;
  const std::uint64_t into_run = begin % run_;
  offset_ = block.offset + into_run;
  for (std::size_t d = ndim_; d-- > 0;) {
    const ByteDim& dim = block.dims[d];
    index_[d] = runs % dim.extent;
    runs /= dim.extent;
    offset_ += index_[d] * dim.stride_bytes;
  }
  run_left_ = std::min(run_ - into_run, left_);
}

void ByteRuns::NextRun(std::uint64_t runs) {
  offset_ -= run_;
  std::uint64_t carry = runs;
  for (std::size_t d = ndim_; d-- > 0 && carry > 0;) {
    const ByteDim& dim = block_->dims[d];
    index_[d] += carry;
    offset_ += carry * dim.stride_bytes;
    carry = 0;
    while (index_[d] >= dim.extent) {
      index_[d] -= dim.extent;
      offset_ -= dim.extent * dim.stride_bytes;
      ++carry;
    }
  }
  run_left_ = std::min(run_, left_);
}

void ByteRuns::Advance(std::uint64_t bytes) {
  left_ -= bytes;
  run_left_ -= bytes;
  offset_ += bytes;
  if (run_left_ == 0 && left_ > 0) NextRun(1);
}

PieceRow ByteRuns::Row(std::uint64_t bytes) const {
  if (bytes < run_left_ || ndim_ == 0) return {run_left_ / bytes, bytes};
  if (bytes < run_) return {1, 0};  // the tail of a run: the next piece starts another one
  const ByteDim& inner = block_->dims[ndim_ - 1];
  return {std::min(inner.extent - index_[ndim_ - 1], left_ / bytes), inner.stride_bytes};
}

void ByteRuns::AdvanceRow(std::uint64_t bytes, std::uint64_t count) {
  if (bytes < run_left_ || ndim_ == 0) return Advance(bytes * count);
  left_ -= bytes * count;
  run_left_ = 0;
  offset_ += bytes;
  if (left_ > 0) NextRun(count);
}

void CopyRuns(BlockSpan<const std::byte> from,
              BlockSpan<std::byte> to,
              std::uint64_t bytes,
              CopiedFor use) {
  ByteRuns source(from.block, from.begin, from.begin + bytes);
  ByteRuns target(to.block, to.begin, to.begin + bytes);
  while (source.left() > 0) {
    const std::uint64_t piece = std::min(source.run_left(), target.run_left());
    const PieceRow read = source.Row(piece);
    const PieceRow write = target.Row(piece);
    const std::uint64_t count = std::min(read.count, write.count);
    const auto copy_row = Streams(use, piece, read.step) ? StreamRow : CopyRow;
    copy_row(from.memory.data() + source.offset(), to.memory.data() + target.offset(),
             {read.step, write.step}, piece, count);
    source.AdvanceRow(piece, count);
    target.AdvanceRow(piece, count);
  }
}

void Gather(std::span<const std::byte> memory,
            const ByteBlock& block,
            std::uint64_t begin,
            std::span<std::byte> packed) {
  const ByteBlock whole = Contiguous(packed.size());
  CopyRuns({memory, block, begin}, {packed, whole, 0}, packed.size());
}

void Scatter(std::span<const std::byte> packed,
             const ByteBlock& block,
             std::uint64_t begin,
             std::span<std::byte> memory) {
  const ByteBlock whole = Contiguous(packed.size());
  CopyRuns({packed, whole, 0}, {memory, block, begin}, packed.size());
}

std::uint64_t EndOffset(const ByteBlock& block) {
  if (block.bytes() == 0) return 0;
  std::uint64_t end = block.offset + block.run_bytes;
  for (const ByteDim& dim : block.dims) end += (dim.extent - 1) * dim.stride_bytes;
  return end;
}

}  // namespace wb
