#include "transport/copy/checksum.h"

#include <bit>
#include <cstring>

namespace wb {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint64_t kIndexKey = 0x9E3779B97F4A7C15;
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
// Words that are summed side by side: enough independent sums to fill a vector unit.
constexpr std::size_t kStrip = 8;

std::uint64_t Mix(std::uint64_t word, std::uint64_t key) {
  const std::uint64_t x = word ^ key;
  const std::uint64_t low = x & 0xFFFFFFFF;
  const std::uint64_t high = x >> 32;
  return low * high + ((low + high) << 32);  // the product of the sums with 2^32, modulo 2^64
}

}  // namespace

std::uint64_t Checksum(std::span<const std::byte> bytes, std::uint64_t first_word) {
  const std::byte* at = bytes.data();
  std::uint64_t key = (first_word + 1) * kIndexKey;
  std::uint64_t sums[kStrip] = {};
  for (std::size_t strips = bytes.size() / (kStrip * kWordBytes); strips > 0; --strips) {
    std::uint64_t words[kStrip];
    std::memcpy(words, at, sizeof(words));  // any alignment
    for (std::size_t i = 0; i < kStrip; ++i) sums[i] += Mix(words[i], key + i * kIndexKey);
    at += sizeof(words);
    key += kStrip * kIndexKey;
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  for (std::size_t left = bytes.size() % (kStrip * kWordBytes); left > 0;) {
    const std::size_t taken = left < kWordBytes ? left : kWordBytes;
    std::uint64_t word = 0;
    std::memcpy(&word, at, taken);
    sum += Mix(word, key);
    at += taken;
    key += kIndexKey;
    left -= taken;
  }
  return sum;
}

}  // namespace wb
