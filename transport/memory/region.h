#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "planner/base/strong_id.h"
#include "transport/memory/device_memory.h"
#include "transport/memory/mapping.h"

namespace wb {

/// Names an opened region. Chosen by whoever opens it; never reused within a process.
using RegionId = StrongId<struct RegionTag>;

/// How bytes are named outside transport/memory.
struct MemoryRef {
  RegionId region;
  std::uint64_t offset = 0;  // bytes from the region's base
  std::uint64_t bytes = 0;
  friend bool operator==(const MemoryRef&, const MemoryRef&) = default;
};

enum class RegionKind : std::uint8_t { kHostFd, kArena, kDevice };
enum class RegionAccess : std::uint8_t { kReadOnly, kReadWrite };

/// Memory the daemon can move bytes from and to: a mapping of a worker's memfd, memory of the
/// daemon's own (arena), or memory of a device. Owns it; move-only.
///
/// The host's memory is reached by the CPU, the fabric and every copier; a device's by that
/// device's copier alone.
///
/// A worker's memfd must carry F_SEAL_SHRINK and F_SEAL_SEAL, or its owner could truncate it under
/// us; it may not be smaller than what is mapped.
class Region {
 public:
  /// Maps [offset, offset + bytes) of `fd`, which may be closed after, at no cost by the byte. Any
  /// offset will do; no bytes are legal. Regions to read from, over the same stretch, are one
  /// mapping of `files`. INVALID_ARGUMENT names a missing seal, a size too small, or something that
  /// is no memfd.
  static absl::StatusOr<Region> MapHostFd(
      int fd, std::uint64_t offset, std::uint64_t bytes, RegionAccess access, MappedFiles& files);
  /// Makes a mapped region's pages present, which costs time by the byte, once, instead of within
  /// the first transfer. `go_on` is asked before each 64 MiB: CANCELLED when it says no.
  /// RESOURCE_EXHAUSTED when the pages cannot be had. From any thread.
  absl::Status Populate(absl::FunctionRef<bool()> go_on) const;
  /// MapHostFd and Populate at once, by a mapping of its own.
  static absl::StatusOr<Region> OpenHostFd(int fd,
                                           std::uint64_t offset,
                                           std::uint64_t bytes,
                                           RegionAccess access);
  /// Anonymous memory of the daemon's own, page-aligned, zeroed and present.
  static absl::StatusOr<Region> AllocateArena(std::uint64_t bytes);
  /// The same before Populate, at no cost by the byte.
  static absl::StatusOr<Region> MapArena(std::uint64_t bytes);
  /// Memory that the device's provider has opened.
  static Region OfDevice(std::unique_ptr<DeviceMemory> memory, RegionAccess access);

  RegionKind kind() const { return kind_; }
  RegionAccess access() const { return access_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Whose memory it is; none for the host's.
  std::optional<DeviceId> device() const;
  /// The region for the CPU and the fabric; only transport/ may look behind it.
  /// FAILED_PRECONDITION names the device whose memory it is.
  absl::StatusOr<std::span<std::byte>> host_memory() const;
  /// Where the region lies for a copier that reaches it; nobody else may look behind it.
  std::span<std::byte> addresses() const { return {base_, static_cast<std::size_t>(bytes_)}; }

 private:
  Region() = default;
  RegionKind kind_ = RegionKind::kHostFd;
  RegionAccess access_ = RegionAccess::kReadOnly;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::shared_ptr<const Mapping> mapping_;  // of whole pages; base_ lies inside
  std::unique_ptr<DeviceMemory> device_memory_;
};

/// Bytes of a region as a copier is told them; `device` as Region::device.
struct CopierMemory {
  std::span<std::byte> bytes;
  std::optional<DeviceId> device;
};

/// The regions of one mover, by id. Loop-confined: call from the mover's thread only.
/// Invariant: a region's memory stays mapped as long as it is in the table.
class RegionTable {
 public:
  /// ALREADY_EXISTS when the id is taken.
  absl::Status Add(RegionId id, Region region);
  /// Unmaps. NOT_FOUND names the id. The caller has ended every transfer that uses it.
  absl::Status Remove(RegionId id);
  /// The bytes a ref names, for CPU and fabric; OUT_OF_RANGE or NOT_FOUND name region, offset and
  /// size, FAILED_PRECONDITION a region that is a device's memory.
  absl::StatusOr<std::span<const std::byte>> Resolve(const MemoryRef& ref) const;
  /// As Resolve, and PERMISSION_DENIED when the region is mapped read-only.
  absl::StatusOr<std::span<std::byte>> ResolveWritable(const MemoryRef& ref) const;
  /// The same for copiers, to which devices' memory can be named.
  absl::StatusOr<CopierMemory> ResolveForCopier(const MemoryRef& ref, RegionAccess access) const;
  std::size_t size() const { return regions_.size(); }
  /// Sum of all regions' bytes.
  std::uint64_t bytes() const { return bytes_; }

 private:
  absl::StatusOr<std::span<std::byte>> ResolveForHost(const MemoryRef& ref,
                                                      RegionAccess access) const;

  absl::flat_hash_map<RegionId, Region> regions_;
  std::uint64_t bytes_ = 0;
};

}  // namespace wb
