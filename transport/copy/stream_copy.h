#pragma once

#include <cstddef>

namespace wb {

/// Shorter copies than this do not gain by StreamCopy: lines that they fill in part are written to
/// memory twice.
inline constexpr std::size_t kLeastStreamedBytes = 128;

/// memcpy past the caches, for bytes that this processor will not read soon: memory is written
/// without being read first, and what the caches hold stays there. Any alignment. Other threads see
/// the bytes once this one has called EndStreaming and synchronised with them.
void StreamCopy(std::byte* to, const std::byte* from, std::size_t bytes);
void EndStreaming();

}  // namespace wb
