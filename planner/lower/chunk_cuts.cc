#include "planner/lower/chunk_cuts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wb {
namespace {

// A row of chunks of which the last may still be open. Used once by CutChunks.
class ChunkRow {
 public:
  explicit ChunkRow(std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  void Close() {
    if (filled_ > 0) chunks_.push_back(filled_);
    filled_ = 0;
  }
  void Append(std::uint64_t bytes) {
    while (bytes > 0) {
      const std::uint64_t taken = std::min(bytes, chunk_bytes_ - filled_);
      filled_ += taken;
      bytes -= taken;
      if (filled_ == chunk_bytes_) Close();
    }
  }
  std::size_t size() const { return chunks_.size(); }
  std::vector<std::uint64_t> Take() && { return std::move(chunks_); }

 private:
  std::uint64_t chunk_bytes_;
  std::uint64_t filled_ = 0;  // of the open chunk
  std::vector<std::uint64_t> chunks_;
};

}  // namespace

absl::StatusOr<std::vector<std::uint64_t>> CutChunks(std::span<const std::uint64_t> move_bytes,
                                                     std::uint64_t chunk_bytes) {
  if (chunk_bytes == 0) return absl::InvalidArgumentError("chunk_bytes is 0, want at least 1");
  ChunkRow row(chunk_bytes);
  for (const std::uint64_t bytes : move_bytes) {
    if (bytes >= chunk_bytes) row.Close();
    const std::uint64_t full = bytes / chunk_bytes;
    if (full >= kMaxChunksOfStream || row.size() + full >= kMaxChunksOfStream) {
      return absl::InvalidArgumentError(absl::StrCat("a stream of more than ", kMaxChunksOfStream,
                                                     " chunks of ", chunk_bytes,
                                                     " bytes, want a larger chunk_bytes"));
    }
    row.Append(bytes);
  }
  row.Close();
  return std::move(row).Take();
}

}  // namespace wb
