#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "planner/base/fd_handle.h"
#include "tests/support/catch.h"
#include "transport/memory/region.h"

namespace wb::test {

/// A worker's memory: a sealed memfd that the test has mapped too, so that it can look at it after
/// the region is gone.
class SealedMemory {
 public:
  explicit SealedMemory(std::uint64_t bytes)
      : bytes_(bytes), fd_(memfd_create("weights", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    REQUIRE(ftruncate(fd_.get(), static_cast<off_t>(bytes)) == 0);
    REQUIRE(fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~SealedMemory() { munmap(memory_, bytes_); }
  SealedMemory(const SealedMemory&) = delete;
  SealedMemory& operator=(const SealedMemory&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), bytes_}; }
  Region Open(RegionAccess access) const {
    return Region::OpenHostFd(fd_.get(), 0, bytes_, access).value();
  }

 private:
  std::uint64_t bytes_;
  FdHandle fd_;
  void* memory_ = nullptr;
};

}  // namespace wb::test
