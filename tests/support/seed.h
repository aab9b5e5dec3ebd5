#pragma once

#include <cstdint>
#include <random>

namespace wb::test {

/// The seed of this run: WB_TEST_SEED if set, else drawn once. Print it with INFO where it is used.
[[nodiscard]] std::uint64_t RunSeed();

/// A generator for one round of a property test, seeded by (RunSeed(), round).
[[nodiscard]] std::mt19937_64 TestRng(int round);

}  // namespace wb::test
