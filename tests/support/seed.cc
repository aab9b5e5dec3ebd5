#include "tests/support/seed.h"

#include <cstdlib>
#include <string>

namespace wb::test {

std::uint64_t RunSeed() {
  static const std::uint64_t seed = []() -> std::uint64_t {
    if (const char* given = std::getenv("WB_TEST_SEED"); given != nullptr) {
      return std::stoull(given);
    }
    return (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  }();
  return seed;
}

std::mt19937_64 TestRng(int round) {
  const std::uint64_t seed = RunSeed();
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         static_cast<std::uint32_t>(round)};
  return std::mt19937_64(sequence);
}

}  // namespace wb::test
