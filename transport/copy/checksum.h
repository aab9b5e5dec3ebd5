#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wb {

/// The checksum of a chunk: a sum that can be taken in any order and in any split, the same by a
/// CPU's vector unit and by a pack kernel.
///
/// The bytes are read as little-endian 64-bit words, the last one padded with zeros. With w the
/// word at index i (bytes 8i to 8i + 7), and all arithmetic modulo 2^64:
///
///     x   = w xor ((i + 1) * 0x9E3779B97F4A7C15)
///     sum = Σ (2^32 + low half of x) * (2^32 + high half of x)
///
/// Both factors are less than 2^33 and never 0, so a change within one half of one word always
/// shows; the key per index makes words that changed places show. It guards against faults, not
/// against someone who wants to deceive.
///
/// Sums add up (modulo 2^64): the sum of a whole is the sum of its parts, if each part but the last
/// has a multiple of 8 bytes and is told the index of its first word.
[[nodiscard]] std::uint64_t Checksum(std::span<const std::byte> bytes,
                                     std::uint64_t first_word = 0);

}  // namespace wb
