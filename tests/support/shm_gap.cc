#include "tests/support/shm_gap.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

namespace wb::test {

bool LeaveShmGap() {
  constexpr std::size_t kFamilyAt = 12;  // after the head and the length of an address
  constexpr std::size_t kPidAt = 136;    // after the second cache line's tail
  constexpr std::uint64_t kAsleep = std::uint64_t{1} << 63;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("ucx_shm_posix") == std::string::npos) continue;
    auto* const start = reinterpret_cast<std::byte*>(std::stoull(line, nullptr, 16));
    sa_family_t family = 0;
    pid_t owner = 0;
    std::memcpy(&family, start + kFamilyAt, sizeof(family));
    std::memcpy(&owner, start + kPidAt, sizeof(owner));
    if (family != AF_UNIX || owner != getpid()) continue;
    const std::atomic_ref<std::uint64_t> head(*reinterpret_cast<std::uint64_t*>(start));
    std::uint64_t seen = head.load();
    while (!head.compare_exchange_weak(seen, (seen & ~kAsleep) + 1)) {
    }
    return true;
  }
  return false;
}

}  // namespace wb::test
