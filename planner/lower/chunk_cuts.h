#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace wb {

/// A stream has at most this many chunks.
inline constexpr std::uint64_t kMaxChunksOfStream = std::uint64_t{1} << 24;

/// Sizes of a stream's chunks, in order, all 1..chunk_bytes, from the sizes of its moves. Both ends
/// compute it alone and must come to the same, so it knows of no memory:
///   - a move of at least `chunk_bytes` starts a new chunk: where it is one run in memory, all of
///     its full chunks go straight from and to that run;
///   - apart from that a chunk ends when it is full, in the middle of a move if need be.
/// So 5 MiB and 3 bytes at 1 MiB are six chunks, the last of 3 bytes; ten thousand moves of 1 KiB
/// are as few chunks as can be; and only a chunk before a large move is shorter than it could be.
/// INVALID_ARGUMENT when `chunk_bytes` is 0 or the chunks are too many.
[[nodiscard]] absl::StatusOr<std::vector<std::uint64_t>> CutChunks(
    std::span<const std::uint64_t> move_bytes, std::uint64_t chunk_bytes);

}  // namespace wb
