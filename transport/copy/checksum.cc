#include "transport/copy/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wb {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint64_t kIndexKey = 0x9E3779B97F4A7C15;
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

/// What is left to sum, and what has been.
struct Progress {
  std::span<const std::byte> bytes;
  std::uint64_t key = 0;  // of the first word of `bytes`
  std::uint64_t sum = 0;

  void Skip(std::size_t count) {
    bytes = bytes.subspan(count);
    key += (count + kWordBytes - 1) / kWordBytes * kIndexKey;
  }
};

std::uint64_t Mix(std::uint64_t word, std::uint64_t key) {
  const std::uint64_t x = word ^ key;
  const std::uint64_t low = x & 0xFFFFFFFF;
  const std::uint64_t high = x >> 32;
  return low * high + ((low + high) << 32);  // (2^32 + low) * (2^32 + high), modulo 2^64
}

void SumWords(Progress& progress) {
  while (!progress.bytes.empty()) {
    const std::size_t taken = std::min(progress.bytes.size(), kWordBytes);
    std::uint64_t word = 0;
    std::memcpy(&word, progress.bytes.data(), taken);  // any alignment; the rest stays zero
    progress.sum += Mix(word, progress.key);
    progress.Skip(taken);
  }
}

#if defined(__x86_64__)
// Mix of four words at a time; compilers do not find this multiplication by themselves.
__attribute__((target("avx2"))) void SumVectors(Progress& progress) {
  constexpr std::size_t kVectorWords = 4;
  constexpr std::size_t kVectors = 4;  // independent sums, to hide the multiplication's latency
  constexpr std::size_t kStripBytes = kVectors * kVectorWords * kWordBytes;
  __m256i sums[kVectors] = {};
  __m256i keys[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    std::uint64_t lanes[kVectorWords];
    for (std::size_t i = 0; i < kVectorWords; ++i) {
      lanes[i] = progress.key + (v * kVectorWords + i) * kIndexKey;
    }
    std::memcpy(&keys[v], lanes, sizeof(lanes));
  }
  const __m256i step =
      _mm256_set1_epi64x(static_cast<std::int64_t>(kVectors * kVectorWords * kIndexKey));
  const std::size_t strips = progress.bytes.size() / kStripBytes;
  const std::byte* at = progress.bytes.data();
  for (std::size_t strip = 0; strip < strips; ++strip, at += kStripBytes) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      __m256i words;
      std::memcpy(&words, at + v * sizeof(words), sizeof(words));
      const __m256i x = _mm256_xor_si256(words, keys[v]);
      const __m256i high = _mm256_srli_epi64(x, 32);
      const __m256i product = _mm256_mul_epu32(x, high);
      const __m256i halves = _mm256_slli_epi64(_mm256_add_epi64(x, high), 32);
      sums[v] = _mm256_add_epi64(sums[v], _mm256_add_epi64(product, halves));
      keys[v] = _mm256_add_epi64(keys[v], step);
    }
  }
  std::uint64_t lanes[kVectors * kVectorWords];
  std::memcpy(lanes, sums, sizeof(lanes));
  for (const std::uint64_t lane : lanes) progress.sum += lane;
  progress.Skip(strips * kStripBytes);
}
#endif

}  // namespace

std::uint64_t Checksum(std::span<const std::byte> bytes, std::uint64_t first_word) {
  Progress progress{bytes, (first_word + 1) * kIndexKey};
#if defined(__x86_64__)
  static const bool vectors = __builtin_cpu_supports("avx2") != 0;
  if (vectors) SumVectors(progress);
#endif
  SumWords(progress);
  return progress.sum;
}

}  // namespace wb
