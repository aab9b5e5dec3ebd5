#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "planner/base/byte_block.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Part of a chunk inside one buffer: bytes [begin, end) of the packed order of `block`.
/// `buffer` is an index into the layout's buffers. A part that is one run in memory is given as
/// just that run (no dims, begin 0, end = run_bytes); any other is one strided block, never a list
/// of runs, however many it has.
struct ChunkPart {
  std::uint32_t buffer = 0;
  ByteBlock block;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t bytes() const { return end - begin; }
  friend bool operator==(const ChunkPart&, const ChunkPart&) = default;
};

/// The bytes of one message, seen from one worker's memory: its parts in stream order.
/// `extra` holds further landings of the same bytes (tied tensors), only at a destination; each
/// entry says at which byte of the chunk it starts.
struct LocalChunk {
  struct Extra {
    std::uint64_t at = 0;
    ChunkPart part;
    friend bool operator==(const Extra&, const Extra&) = default;
  };
  std::uint64_t bytes = 0;
  std::vector<ChunkPart> parts;
  std::vector<Extra> extra;
  /// One contiguous run and nothing else: it is sent from, or received into, the region itself.
  bool contiguous() const {
    return parts.size() == 1 && parts.front().block.contiguous() && extra.empty();
  }
  friend bool operator==(const LocalChunk&, const LocalChunk&) = default;
};

/// Everything one worker sends to one other, cut into chunks: a *stream* is the packed bytes of
/// the moves of the pair (src, dst) in plan order. Chunk boundaries depend on the plan and
/// `chunk_bytes` alone (planner/lower/chunk_cuts.h), so that both ends, each with its own layout,
/// number the same chunks.
struct LocalStream {
  WorkerIndex src;
  WorkerIndex dst;
  std::uint64_t bytes = 0;
  std::vector<LocalChunk> chunks;
  friend bool operator==(const LocalStream&, const LocalStream&) = default;
};

/// Largest message, in bytes, if the options do not say otherwise.
inline constexpr std::uint64_t kDefaultChunkBytes = std::uint64_t{1} << 20;

/// Which end of the stream the given layout is.
enum class StreamEnd : std::uint8_t { kSource, kDestination };

/// Lowers the moves of one (src, dst) pair, in plan order, against the layout of one end.
///
/// Neighbouring runs are merged: gate and up of an expert that lie side by side in memory are one
/// part. `moves` must all have the same src and dst; FAILED_PRECONDITION names the tensor and box
/// that the layout does not hold.
[[nodiscard]] absl::StatusOr<LocalStream> LowerStream(const std::vector<Move>& moves,
                                                      const std::vector<Tensor>& tensors,
                                                      const Layout& layout,
                                                      StreamEnd end,
                                                      std::uint64_t chunk_bytes);

}  // namespace wb
