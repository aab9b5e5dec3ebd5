#include "transport/memory/mapping.h"

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "planner/base/status_macros.h"

namespace wb {
namespace {

/// What ENOMEM of mmap most often means: each stretch is a mapping.
std::string MapLimitText() {
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::string most = "?";
  file >> most;
  return absl::StrCat(" (vm.max_map_count allows a process ", most, " mappings)");
}

absl::Status NotMapped(int error, std::uint64_t bytes, const char* how) {
  return absl::ErrnoToStatus(error, absl::StrFormat("memory: cannot map %d bytes %s%s", bytes, how,
                                                    error == ENOMEM ? MapLimitText() : ""));
}

}  // namespace

Mapping::~Mapping() {
  munmap(start_, bytes_);
}

absl::StatusOr<std::shared_ptr<const Mapping>> MappedFiles::MapToWrite(int fd,
                                                                       std::uint64_t from,
                                                                       std::uint64_t bytes) {
  void* const start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(from));
  if (start == MAP_FAILED) return NotMapped(errno, bytes, "writable");
  return std::make_shared<const Mapping>(start, bytes);
}

absl::StatusOr<std::shared_ptr<const Mapping>> MappedFiles::MapToRead(int fd,
                                                                      std::uint64_t from,
                                                                      std::uint64_t bytes) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, "memory: fstat");
  // The kernel is not asked where the stretch is mapped already.
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) return NotMapped(EACCES, bytes, "read-only");
  const Stretch stretch{info.st_dev, info.st_ino, from, bytes};
  const MutexLock lock(shared_->mu);
  std::weak_ptr<const Mapping>& entry = shared_->mappings[stretch];
  if (std::shared_ptr<const Mapping> mapping = entry.lock(); mapping != nullptr) return mapping;
  void* const start = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(from));
  if (start == MAP_FAILED) {
    const int error = errno;
    shared_->mappings.erase(stretch);
    return NotMapped(error, bytes, "read-only");
  }
  const auto unmap = [shared = shared_, stretch](const Mapping* mapping) {
    {
      const MutexLock forget(shared->mu);
      const auto found = shared->mappings.find(stretch);
      // Somebody may have mapped it anew meanwhile.
      if (found != shared->mappings.end() && found->second.expired()) shared->mappings.erase(found);
    }
    delete mapping;
  };
  std::shared_ptr<const Mapping> mapping(new Mapping(start, bytes), unmap);
  entry = mapping;
  return mapping;
}

std::size_t MappedFiles::size() const {
  const MutexLock lock(shared_->mu);
  return shared_->mappings.size();
}

}  // namespace wb
