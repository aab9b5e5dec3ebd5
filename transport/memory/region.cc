#include "transport/memory/region.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "planner/base/checked_math.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

// Made present between two looks at whether anybody still wants it; of a size of whole pages,
// whatever these are.
constexpr std::uint64_t kPopulateBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxMappingBytes = std::uint64_t{1} << 46;  // half of a user's addresses

constexpr const char* kWantedMemory = "want a memfd with F_SEAL_SHRINK and F_SEAL_SEAL";

/// A plain file of a tmpfs passes for a memfd that can be sealed no more: it lacks the one seal.
absl::Status CheckSeals(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("memory: descriptor %d is not a memfd, %s", fd, kWantedMemory));
  }
  for (const auto& [seal, name] :
       {std::pair{F_SEAL_SHRINK, "F_SEAL_SHRINK"}, std::pair{F_SEAL_SEAL, "F_SEAL_SEAL"}}) {
    if ((seals & seal) == 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("memory: descriptor %d lacks %s, %s", fd, name, kWantedMemory));
    }
  }
  return absl::OkStatus();
}

/// Mappings of a file start and end at multiples of this.
absl::StatusOr<std::uint64_t> PageBytes(int fd) {
  struct statfs info {};
  if (fstatfs(fd, &info) != 0) return absl::ErrnoToStatus(errno, "memory: fstatfs");
  if (info.f_type == HUGETLBFS_MAGIC) return static_cast<std::uint64_t>(info.f_bsize);
  return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

absl::Status CheckSize(int fd, std::uint64_t offset, std::uint64_t bytes) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "memory: fstat");
  if (!InRange(offset, bytes, static_cast<std::uint64_t>(info.st_size))) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "memory: the memfd has %d bytes, want %d from offset %d", info.st_size, bytes, offset));
  }
  return absl::OkStatus();
}

/// Makes the pages present, so that no later access faults or fails for want of memory.
absl::Status PopulatePages(void* start, std::uint64_t bytes, RegionAccess access) {
  const int advice = access == RegionAccess::kReadWrite ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  int result = 0;
  do {
    result = madvise(start, bytes, advice);
  } while (result != 0 && (errno == EINTR || errno == EAGAIN));
  if (result == 0 || errno == EINVAL) return absl::OkStatus();  // EINVAL: a kernel before 5.14
  return absl::ResourceExhaustedError(
      absl::StrFormat("memory: the pages of %d bytes cannot be had: %s", bytes,
                      std::string(absl::ErrnoToStatus(errno, "").message())));
}

std::string OfDeviceText(DeviceId device) {
  return absl::StrCat("memory of device ", device.value(),
                      ", which only its copier reaches; want the host's");
}

}  // namespace

absl::StatusOr<Region> Region::OpenHostFd(int fd,
                                          std::uint64_t offset,
                                          std::uint64_t bytes,
                                          RegionAccess access) {
  MappedFiles alone;
  WB_ASSIGN_OR_RETURN(Region region, MapHostFd(fd, offset, bytes, access, alone));
  WB_RETURN_IF_ERROR(region.Populate([] { return true; }));
  return region;
}

absl::Status Region::Populate(absl::FunctionRef<bool()> go_on) const {
  const std::uint64_t bytes = mapping_ == nullptr ? 0 : mapping_->bytes();
  for (std::uint64_t at = 0; at < bytes; at += kPopulateBytes) {
    if (!go_on()) {
      return absl::CancelledError(
          absl::StrFormat("memory: %d of %d bytes were made present", at, bytes));
    }
    const std::uint64_t step = std::min(kPopulateBytes, bytes - at);
    WB_RETURN_IF_ERROR(PopulatePages(mapping_->start() + at, step, access_));
  }
  return absl::OkStatus();
}

absl::StatusOr<Region> Region::MapHostFd(
    int fd, std::uint64_t offset, std::uint64_t bytes, RegionAccess access, MappedFiles& files) {
  WB_RETURN_IF_ERROR(CheckSeals(fd));
  WB_RETURN_IF_ERROR(CheckSize(fd, offset, bytes));
  WB_ASSIGN_OR_RETURN(const std::uint64_t page, PageBytes(fd));
  Region region;
  region.kind_ = RegionKind::kHostFd;
  region.access_ = access;
  region.bytes_ = bytes;
  if (bytes == 0) return region;
  const std::uint64_t lead = offset % page;
  WB_ASSIGN_OR_RETURN(const std::uint64_t wanted, CheckedAdd(lead, bytes));
  if (wanted > kMaxMappingBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("memory: %d bytes are more than can be mapped", bytes));
  }
  const std::uint64_t mapped = (wanted + page - 1) / page * page;
  auto mapping = access == RegionAccess::kReadWrite
                     ? MappedFiles::MapToWrite(fd, offset - lead, mapped)
                     : files.MapToRead(fd, offset - lead, mapped);
  if (!mapping.ok()) return mapping.status();
  region.mapping_ = *std::move(mapping);
  region.base_ = region.mapping_->start() + lead;
  return region;
}

absl::StatusOr<Region> Region::AllocateArena(std::uint64_t bytes) {
  WB_ASSIGN_OR_RETURN(Region region, MapArena(bytes));
  WB_RETURN_IF_ERROR(region.Populate([] { return true; }));
  return region;
}

absl::StatusOr<Region> Region::MapArena(std::uint64_t bytes) {
  Region region;
  region.kind_ = RegionKind::kArena;
  region.access_ = RegionAccess::kReadWrite;
  region.bytes_ = bytes;
  if (bytes == 0) return region;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > kMaxMappingBytes) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("arena: %d bytes are more than can be mapped", bytes));
  }
  const std::uint64_t mapped = (bytes + page - 1) / page * page;
  void* const start =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrFormat("arena: cannot map %d bytes", bytes));
  }
  region.mapping_ = std::make_shared<const Mapping>(start, mapped);
  region.base_ = region.mapping_->start();
  // Advice only: without huge pages the arena works as well, with more entries in the TLB.
  static_cast<void>(madvise(start, mapped, MADV_HUGEPAGE));
  return region;
}

Region Region::OfDevice(std::unique_ptr<DeviceMemory> memory, RegionAccess access) {
  Region region;
  region.kind_ = RegionKind::kDevice;
  region.access_ = access;
  region.base_ = memory->addresses().data();
  region.bytes_ = memory->addresses().size();
  region.device_memory_ = std::move(memory);
  return region;
}

std::optional<DeviceId> Region::device() const {
  if (device_memory_ == nullptr) return std::nullopt;
  return device_memory_->device();
}

absl::StatusOr<std::span<std::byte>> Region::host_memory() const {
  if (device_memory_ == nullptr) return addresses();
  return absl::FailedPreconditionError(OfDeviceText(device_memory_->device()));
}

absl::Status RegionTable::Add(RegionId id, Region region) {
  const std::uint64_t bytes = region.bytes();
  if (!regions_.try_emplace(id, std::move(region)).second) {
    return absl::AlreadyExistsError(absl::StrCat("region ", id.value(), " is open already"));
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status RegionTable::Remove(RegionId id) {
  const auto found = regions_.find(id);
  if (found == regions_.end()) {
    return absl::NotFoundError(absl::StrCat("region ", id.value(), " is not open"));
  }
  bytes_ -= found->second.bytes();
  regions_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<CopierMemory> RegionTable::ResolveForCopier(const MemoryRef& ref,
                                                           RegionAccess access) const {
  const auto found = regions_.find(ref.region);
  if (found == regions_.end()) {
    return absl::NotFoundError(absl::StrCat("region ", ref.region.value(), " is not open"));
  }
  const Region& region = found->second;
  if (!InRange(ref.offset, ref.bytes, region.bytes())) {
    return absl::OutOfRangeError(absl::StrFormat("region %d has %d bytes, want %d from offset %d",
                                                 ref.region.value(), region.bytes(), ref.bytes,
                                                 ref.offset));
  }
  if (access == RegionAccess::kReadWrite && region.access() == RegionAccess::kReadOnly) {
    return absl::PermissionDeniedError(
        absl::StrCat("region ", ref.region.value(), " is read-only, want it writable"));
  }
  return CopierMemory{region.addresses().subspan(ref.offset, ref.bytes), region.device()};
}

absl::StatusOr<std::span<std::byte>> RegionTable::ResolveForHost(const MemoryRef& ref,
                                                                 RegionAccess access) const {
  WB_ASSIGN_OR_RETURN(const CopierMemory memory, ResolveForCopier(ref, access));
  if (!memory.device.has_value()) return memory.bytes;
  return absl::FailedPreconditionError(
      absl::StrCat("region ", ref.region.value(), " is ", OfDeviceText(*memory.device)));
}

absl::StatusOr<std::span<const std::byte>> RegionTable::Resolve(const MemoryRef& ref) const {
  return ResolveForHost(ref, RegionAccess::kReadOnly);
}

absl::StatusOr<std::span<std::byte>> RegionTable::ResolveWritable(const MemoryRef& ref) const {
  return ResolveForHost(ref, RegionAccess::kReadWrite);
}

}  // namespace wb
