#include "planner/lower/chunk_cuts.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wb {

absl::StatusOr<std::vector<std::uint64_t>> CutChunks(std::span<const std::uint64_t> move_bytes,
                                                     std::uint64_t chunk_bytes) {
  if (chunk_bytes == 0) return absl::InvalidArgumentError("chunk_bytes is 0, want at least 1");
  std::vector<std::uint64_t> chunks;
  std::uint64_t filled = 0;  // bytes in the open chunk
  for (const std::uint64_t bytes : move_bytes) {
    if (bytes >= chunk_bytes && filled > 0) {
      chunks.push_back(filled);
      filled = 0;
    }
    const std::uint64_t full = bytes / chunk_bytes;
    if (full >= kMaxChunksOfStream || chunks.size() + full >= kMaxChunksOfStream) {
      return absl::InvalidArgumentError(absl::StrCat("a stream of more than ", kMaxChunksOfStream,
                                                     " chunks of ", chunk_bytes,
                                                     " bytes, want a larger chunk_bytes"));
    }
    std::uint64_t left = bytes;
    while (left > 0) {
      const std::uint64_t taken = std::min(left, chunk_bytes - filled);
      filled += taken;
      left -= taken;
      if (filled == chunk_bytes) {
        chunks.push_back(filled);
        filled = 0;
      }
    }
  }
  if (filled > 0) chunks.push_back(filled);
  return chunks;
}

}  // namespace wb
