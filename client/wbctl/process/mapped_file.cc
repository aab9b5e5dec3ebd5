#include "client/wbctl/process/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "planner/base/fd_handle.h"

namespace wb {

absl::StatusOr<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  // A FIFO is opened, and refused, without waiting for its writer.
  const FdHandle fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path.string()));
  struct stat stat {};
  if (::fstat(fd.get(), &stat) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", path.string()));
  }
  if (!S_ISREG(stat.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path.string(), " is not a regular file"));
  }
  const auto size = static_cast<std::size_t>(stat.st_size);
  if (size == 0) return MappedFile(std::span<std::byte>{});
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot map ", path.string()));
  }
  return MappedFile(std::span<std::byte>(static_cast<std::byte*>(address), size));
}

}  // namespace wb
