#include "client/src/shared_buffer.h"

#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace wb::client {
namespace {

constexpr const char* kAdvice =
    "; host memory is handed to the daemon as a sealed memfd over the worker socket: allow "
    "memfd_create, fcntl(F_ADD_SEALS) and sendmsg with SCM_RIGHTS in this process's seccomp "
    "profile";

/// A refused system call is a property of the system here, not of the caller's rights.
Error Unavailable(int error, const std::string& call) {
  Error failed = SystemError(error, call);
  if (error == ENOSYS || error == EPERM || error == EACCES) {
    failed.code = WB_UNAVAILABLE;
    failed.message += kAdvice;
  }
  return failed;
}

/// RLIMIT_FSIZE counts for memfds too, and who passes it gets SIGXFSZ, which ends a process.
Result<void> CheckFileLimit(std::uint64_t bytes, const std::string& what) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur) return {};
  return Error{WB_RESOURCE_EXHAUSTED,
               what + "this process may make files of " + std::to_string(limit.rlim_cur) +
                   " bytes at most (RLIMIT_FSIZE, ulimit -f)",
               {}};
}

}  // namespace

Result<SealedBuffer> SealedBuffer::Create(std::uint64_t bytes) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (bytes == 0 || bytes > kMost) {
    return Error{
        WB_INVALID_ARGUMENT,
        "shared buffer: " + std::to_string(bytes) + " bytes, want 1 to " + std::to_string(kMost),
        {}};
  }
  const std::string what = "shared buffer of " + std::to_string(bytes) + " bytes: ";
  if (Result<void> may = CheckFileLimit(bytes, what); !may.ok()) return may.error();
  FdHandle fd(::memfd_create("weightbridge", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Unavailable(errno, what + "memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return SystemError(errno, what + "ftruncate");
  }
  // The size is final before the seals forbid to change it, and F_SEAL_SEAL forbids to add one
  // that would forbid writing.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return Unavailable(errno, what + "fcntl(F_ADD_SEALS)");
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return SystemError(errno, what + "mmap");
  return SealedBuffer(std::move(fd), data, bytes);
}

SealedBuffer::SealedBuffer(FdHandle fd, void* data, std::uint64_t bytes)
    : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

SealedBuffer::SealedBuffer(SealedBuffer&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SealedBuffer::~SealedBuffer() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace wb::client
