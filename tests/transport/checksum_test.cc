#include "transport/copy/checksum.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using Bytes = std::vector<std::byte>;

Bytes RandomBytes(std::mt19937_64& rng, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = std::byte(rng() & 0xFF);
  return bytes;
}

/// The formula of the header, word by word, with 128-bit arithmetic.
std::uint64_t SlowChecksum(const Bytes& bytes) {
  __extension__ using Wide = unsigned __int128;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i * 8 < bytes.size(); ++i) {
    std::uint64_t word = 0;
    for (std::size_t b = 0; b < 8 && i * 8 + b < bytes.size(); ++b) {
      word |= static_cast<std::uint64_t>(bytes[i * 8 + b]) << (8 * b);
    }
    const std::uint64_t x = word ^ ((i + 1) * 0x9E3779B97F4A7C15);
    const Wide two32 = Wide{1} << 32;
    sum += static_cast<std::uint64_t>((two32 + (x & 0xFFFFFFFF)) * (two32 + (x >> 32)));
  }
  return sum;
}

TEST_CASE("a checksum is the formula of its header, whatever the length",
          "[transport][checksum][property]") {
  const int round = GENERATE(range(0, 150));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Bytes bytes = RandomBytes(rng, static_cast<std::size_t>(round) * 3);
  REQUIRE(Checksum(bytes) == SlowChecksum(bytes));
}

TEST_CASE("the checksum of known bytes never changes", "[transport][checksum]") {
  // Peers compare checksums: a new formula needs a new protocol version.
  REQUIRE(Checksum({}) == 0);
  Bytes bytes(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i);
  REQUIRE(Checksum(bytes) == 0x0BCA52A4E9BA0832);
}

TEST_CASE("checksums of parts add up to that of the whole, in any order",
          "[transport][checksum][property]") {
  const int round = GENERATE(range(0, 100));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  const Bytes bytes = RandomBytes(rng, rng() % 5000);
  std::vector<std::uint64_t> sums;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t part = std::min<std::size_t>((1 + rng() % 40) * 8, bytes.size() - at);
    sums.push_back(Checksum(std::span(bytes).subspan(at, part), at / 8));
    at += part;
  }
  std::shuffle(sums.begin(), sums.end(), rng);
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  REQUIRE(total == Checksum(bytes));
}

TEST_CASE("any flipped bit changes the checksum", "[transport][checksum][property]") {
  const int round = GENERATE(range(0, 10));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  Bytes bytes = RandomBytes(rng, 101);
  const std::uint64_t sum = Checksum(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte(1 << (bit % 8));
    REQUIRE(Checksum(bytes) != sum);
    bytes[bit / 8] ^= std::byte(1 << (bit % 8));
  }
}

TEST_CASE("the same bit flipped in two words, and words that changed places, change the checksum",
          "[transport][checksum][property]") {
  std::mt19937_64 rng = test::TestRng(0);
  INFO("WB_TEST_SEED=" << test::RunSeed());
  Bytes bytes = RandomBytes(rng, 256);
  const std::uint64_t sum = Checksum(bytes);
  for (std::size_t bit = 0; bit < 64; ++bit) {  // the top bit too, where plain sums cancel
    Bytes flipped = bytes;
    flipped[bit / 8] ^= std::byte(1 << (bit % 8));
    flipped[64 + bit / 8] ^= std::byte(1 << (bit % 8));
    REQUIRE(Checksum(flipped) != sum);
  }
  for (std::size_t word = 1; word < 32; ++word) {
    Bytes swapped = bytes;
    std::swap_ranges(swapped.begin(), swapped.begin() + 8,
                     swapped.begin() + static_cast<std::ptrdiff_t>(word * 8));
    REQUIRE(Checksum(swapped) != sum);
  }
}

TEST_CASE("a checksum reads bytes at any alignment, and none beyond", "[transport][checksum]") {
  std::mt19937_64 rng = test::TestRng(1);
  INFO("WB_TEST_SEED=" << test::RunSeed());
  const Bytes bytes = RandomBytes(rng, 777);
  for (std::size_t shift = 0; shift < 9; ++shift) {
    Bytes shifted(shift);
    shifted.insert(shifted.end(), bytes.begin(), bytes.end());
    REQUIRE(Checksum(std::span(shifted).subspan(shift)) == Checksum(bytes));
  }
}

}  // namespace
}  // namespace wb
