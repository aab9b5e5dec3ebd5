#include "transport/copy/stream_copy.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

TEST_CASE("a streamed copy is exact at any alignment and length", "[transport][copy][property]") {
  constexpr std::size_t kLine = 64;
  const auto into_line = static_cast<std::size_t>(GENERATE(range(0, 64)));
  INFO("WB_TEST_SEED=" << test::RunSeed());
  std::mt19937_64 rng = test::TestRng(static_cast<int>(into_line));
  std::vector<std::byte> from(8 * kLine);
  for (std::byte& byte : from) byte = std::byte(rng() & 0xFF);
  alignas(kLine) std::byte to[8 * kLine];
  for (std::size_t bytes = 0; bytes <= 5 * kLine; ++bytes) {
    const std::size_t start = rng() % kLine;
    std::vector<std::byte> expected(sizeof(to), std::byte{0xA5});
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(start), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(into_line));
    std::fill(std::begin(to), std::end(to), std::byte{0xA5});
    StreamCopy(to + into_line, from.data() + start, bytes);
    EndStreaming();
    REQUIRE(std::equal(std::begin(to), std::end(to), expected.begin()));
  }
}

}  // namespace
}  // namespace wb
