#include "transport/copy/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace wb {

#if defined(__x86_64__)
namespace {

constexpr std::size_t kLineBytes = 64;

/// Whole lines, from where a line of `to` begins.
__attribute__((target("avx2"))) void StreamLines(std::byte* to,
                                                 const std::byte* from,
                                                 std::size_t lines) {
  for (std::size_t line = 0; line < lines; ++line, to += kLineBytes, from += kLineBytes) {
    const auto* const halves = reinterpret_cast<const __m256i*>(from);
    const __m256i first = _mm256_loadu_si256(halves);
    const __m256i second = _mm256_loadu_si256(halves + 1);
    auto* const into = reinterpret_cast<__m256i*>(to);
    _mm256_stream_si256(into, first);
    _mm256_stream_si256(into + 1, second);
  }
}

}  // namespace

void StreamCopy(std::byte* to, const std::byte* from, std::size_t bytes) {
  static const bool streams = __builtin_cpu_supports("avx2") != 0;
  if (!streams) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t before = (kLineBytes - reinterpret_cast<std::uintptr_t>(to)) % kLineBytes;
  const std::size_t head = std::min(before, bytes);
  std::memcpy(to, from, head);
  const std::size_t lines = (bytes - head) / kLineBytes;
  StreamLines(to + head, from + head, lines);
  const std::size_t done = head + lines * kLineBytes;
  std::memcpy(to + done, from + done, bytes - done);
}

void EndStreaming() {
  _mm_sfence();
}
#else
void StreamCopy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void EndStreaming() {}
#endif

}  // namespace wb
