#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "daemon/move/attempt_work.h"
#include "planner/lower/schedule.h"
#include "transport/copy/copier.h"
#include "transport/memory/region.h"

namespace wb {

/// A bound stream whose every part was checked against its region once, so that nothing needs to
/// be looked up or checked while its chunks move.
///
/// Invariant: each part lies inside memory that stays open while its region is in the table; the
/// parts of a chunk add up to it, the chunks to the stream; extras lie inside their chunk; all of
/// it is memory of the host and of one device at most.
/// Immutable value; the copies it describes may run on any thread while the owner keeps the stream
/// and its regions.
class CheckedStream {
 public:
  /// OUT_OF_RANGE, NOT_FOUND or PERMISSION_DENIED (a destination mapped read-only) name region,
  /// chunk and numbers; INVALID_ARGUMENT a stream that contradicts itself, or has two devices.
  static absl::StatusOr<CheckedStream> Create(BoundStream bound,
                                              const RegionTable& regions,
                                              StreamEnd end);

  std::uint32_t chunks() const { return static_cast<std::uint32_t>(bound_.stream.chunks.size()); }
  std::uint64_t bytes() const { return bound_.stream.bytes; }
  std::uint64_t chunk_bytes(std::uint32_t chunk) const { return bound_.stream.chunks[chunk].bytes; }
  /// The regions that the stream reads or writes, each once.
  const std::vector<RegionId>& regions() const { return used_; }
  /// Whose copier it takes to reach all of its memory; none: the host's.
  std::optional<DeviceId> device() const { return device_; }

  /// Whether the chunk is one contiguous run of the host's memory, so that it is sent from, or
  /// received into, the region itself (a destination's extras are copied from there).
  bool direct(std::uint32_t chunk) const { return direct_[chunk] != kPacked; }
  /// Of a direct chunk.
  MemoryRef Ref(std::uint32_t chunk) const;
  /// Of a direct chunk.
  std::span<const std::byte> Memory(std::uint32_t chunk) const;

  // What a copier has to do, appended to `steps`. The steps point into the stream.

  /// Gather a chunk's parts into `packed`, which has its size.
  void Pack(std::uint32_t chunk, std::span<std::byte> packed, std::vector<CopyStep>& steps) const;
  /// Scatter a chunk to its parts.
  void Unpack(std::uint32_t chunk,
              std::span<const std::byte> packed,
              std::vector<CopyStep>& steps) const;
  /// To its extras.
  void UnpackExtras(std::uint32_t chunk,
                    std::span<const std::byte> packed,
                    std::vector<CopyStep>& steps) const;
  /// From a source with the same chunks to its parts and its extras.
  void CopyFrom(const CheckedStream& source,
                std::uint32_t chunk,
                std::vector<CopyStep>& steps) const;

 private:
  static constexpr std::uint64_t kPacked = ~std::uint64_t{0};
  class PartCursor;

  CheckedStream() = default;
  absl::Status Check(const RegionTable& regions, StreamEnd end);
  absl::Status CheckChunk(std::uint32_t chunk, std::vector<std::uint64_t>& ends) const;
  absl::Status ResolveBuffers(const RegionTable& regions,
                              StreamEnd end,
                              const std::vector<std::uint64_t>& ends);
  absl::Status ResolveBuffer(const RegionTable& regions, const MemoryRef& ref, std::size_t buffer);
  absl::Status NoteDevice(DeviceId device);
  void FindDirect();
  /// Fills `part` with what follows the cursor in the source's chunk.
  void CopyPart(const CheckedStream& source,
                PartCursor& from,
                const ChunkPart& part,
                std::vector<CopyStep>& steps) const;

  BoundStream bound_;
  // Per buffer, from its first byte, as copiers know it; empty if unused. A source has no
  // `writable_`.
  std::vector<std::span<const std::byte>> memory_;
  std::vector<std::span<std::byte>> writable_;
  std::vector<bool> of_host_;  // per buffer: the fabric reaches it
  std::optional<DeviceId> device_;
  std::vector<std::uint64_t> direct_;  // per chunk: offset in its buffer, or kPacked
  std::vector<RegionId> used_;
};

}  // namespace wb
