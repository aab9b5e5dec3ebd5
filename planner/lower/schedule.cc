#include "planner/lower/schedule.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "planner/base/checked_math.h"
#include "planner/base/status_macros.h"
#include "planner/lower/chunk_cuts.h"
#include "planner/lower/piece_block.h"
#include "planner/lower/piece_lookup.h"

namespace wb {
namespace {

// A block of one buffer at byte `at` of the stream.
struct Span {
  std::uint64_t at = 0;
  std::uint32_t buffer = 0;
  ByteBlock block;
  std::uint64_t end() const { return at + block.bytes(); }
};

// Blocks in stream order that do not overlap; neighbours that are one run are merged.
class Track {
 public:
  void Add(std::uint64_t at, std::uint32_t buffer, ByteBlock block) {
    if (!spans_.empty() && spans_.back().end() == at && spans_.back().buffer == buffer &&
        Merge(spans_.back().block, block)) {
      return;
    }
    spans_.push_back({at, buffer, std::move(block)});
  }

  /// Calls `visit(at, part)` for what lies in stream bytes [begin, end). Ranges are asked for in
  /// ascending order.
  template <typename Visit>
  void Take(std::uint64_t begin, std::uint64_t end, Visit visit) {
    while (next_ < spans_.size() && spans_[next_].end() <= begin) ++next_;
    for (std::size_t i = next_; i < spans_.size() && spans_[i].at < end; ++i) {
      const Span& span = spans_[i];
      const std::uint64_t from = std::max(begin, span.at);
      const std::uint64_t to = std::min(end, span.end());
      visit(from, Part(span, from - span.at, to - span.at));
    }
  }

 private:
  // Bytes [begin, end) of a span; what lies in one run of it is a run by itself.
  static ChunkPart Part(const Span& span, std::uint64_t begin, std::uint64_t end) {
    const ByteBlock& block = span.block;
    std::uint64_t run = begin / block.run_bytes;
    if (run != (end - 1) / block.run_bytes) return {span.buffer, block, begin, end};
    std::uint64_t offset = block.offset + begin % block.run_bytes;
    for (std::size_t d = block.dims.size(); d-- > 0;) {
      offset += run % block.dims[d].extent * block.dims[d].stride_bytes;
      run /= block.dims[d].extent;
    }
    return {span.buffer, ByteBlock{offset, end - begin, {}}, 0, end - begin};
  }

  std::vector<Span> spans_;
  std::size_t next_ = 0;  // spans before it are behind every range to come
};

// Lowers one stream against one layout. Used once by LowerStream.
class Lowering {
 public:
  Lowering(const std::vector<Tensor>& tensors, const Layout& layout, StreamEnd end)
      : tensors_(tensors), layout_(layout), end_(end), lookup_(layout), tracks_(1) {}

  absl::Status Add(const Move& move) {
    if (move.tensor.value() >= tensors_.size()) {
      return absl::FailedPreconditionError(absl::StrCat("move of tensor ", move.tensor.value(),
                                                        ", the plan names ", tensors_.size(),
                                                        " tensors"));
    }
    const Tensor& tensor = tensors_[move.tensor.value()];
    const auto element_bytes = static_cast<std::uint64_t>(DtypeBytes(tensor.dtype));
    WB_ASSIGN_OR_RETURN(const std::uint64_t bytes,
                        CheckedMul(static_cast<std::uint64_t>(move.box.elements()), element_bytes));
    WB_ASSIGN_OR_RETURN(const std::uint64_t after, CheckedAdd(stream_bytes_, bytes));
    const std::vector<std::uint32_t> holding = lookup_.Holding(move.tensor, move.box);
    if (holding.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "tensor ", tensor.name, ": worker ", layout_.name.ToString(),
          " has no piece that holds all of box ", move.box.ToString(), " of the plan"));
    }
    Land(holding, move.box, element_bytes);
    move_bytes_.push_back(bytes);
    stream_bytes_ = after;
    return absl::OkStatus();
  }

  absl::StatusOr<LocalStream> Cut(std::uint64_t chunk_bytes) && {
    WB_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> sizes,
                        CutChunks(move_bytes_, chunk_bytes));
    LocalStream stream;
    stream.bytes = stream_bytes_;
    stream.chunks.reserve(sizes.size());
    std::uint64_t begin = 0;
    for (const std::uint64_t bytes : sizes) {
      stream.chunks.push_back(TakeChunk(begin, bytes));
      begin += bytes;
    }
    return stream;
  }

 private:
  // The n-th piece that holds the box goes to the n-th track, unless it is the same memory as an
  // earlier one. A source reads from the first and needs no other.
  void Land(const std::vector<std::uint32_t>& holding,
            const Box& box,
            std::uint64_t element_bytes) {
    std::vector<std::pair<std::uint32_t, ByteBlock>> seen;
    for (const std::uint32_t number : holding) {
      const Piece& piece = layout_.pieces[number];
      std::pair<std::uint32_t, ByteBlock> block(piece.buffer, BlockOf(piece, box, element_bytes));
      if (std::find(seen.begin(), seen.end(), block) != seen.end()) continue;
      if (seen.size() == tracks_.size()) tracks_.emplace_back();
      tracks_[seen.size()].Add(stream_bytes_, block.first, block.second);
      seen.push_back(std::move(block));
      if (end_ == StreamEnd::kSource) break;
    }
  }

  LocalChunk TakeChunk(std::uint64_t begin, std::uint64_t bytes) {
    LocalChunk chunk;
    chunk.bytes = bytes;
    tracks_.front().Take(begin, begin + bytes, [&](std::uint64_t /*at*/, ChunkPart part) {
      chunk.parts.push_back(std::move(part));
    });
    for (std::size_t t = 1; t < tracks_.size(); ++t) {
      tracks_[t].Take(begin, begin + bytes, [&](std::uint64_t at, ChunkPart part) {
        chunk.extra.push_back({at - begin, std::move(part)});
      });
    }
    return chunk;
  }

  const std::vector<Tensor>& tensors_;
  const Layout& layout_;
  StreamEnd end_;
  PieceLookup lookup_;
  std::vector<Track> tracks_;  // the first covers the stream, the others hold further landings
  std::vector<std::uint64_t> move_bytes_;
  std::uint64_t stream_bytes_ = 0;
};

}  // namespace

absl::StatusOr<LocalStream> LowerStream(const std::vector<Move>& moves,
                                        const std::vector<Tensor>& tensors,
                                        const Layout& layout,
                                        StreamEnd end,
                                        std::uint64_t chunk_bytes) {
  Lowering lowering(tensors, layout, end);
  for (const Move& move : moves) {
    if (move.src != moves.front().src || move.dst != moves.front().dst) {
      return absl::InvalidArgumentError("moves of several pairs of workers in one stream");
    }
    WB_RETURN_IF_ERROR(lowering.Add(move));
  }
  WB_ASSIGN_OR_RETURN(LocalStream stream, std::move(lowering).Cut(chunk_bytes));
  if (!moves.empty()) {
    stream.src = moves.front().src;
    stream.dst = moves.front().dst;
  }
  return stream;
}

}  // namespace wb
