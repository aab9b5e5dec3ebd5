#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

namespace wb::test {

/// Aborts, and says why, where `holds` is false.
inline void RequireInCase(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "fuzz case: " << what << "\n";
  std::abort();
}

/// Calls `take(what, text)` for each piece [what: 1 byte][length: 2, little endian][text]; the last
/// may be cut.
template <typename Take>
void ForEachPiece(std::span<const std::uint8_t> bytes, Take take) {
  while (bytes.size() >= 3) {
    const std::uint8_t what = bytes[0];
    const auto length = static_cast<std::size_t>(bytes[1] + 256 * bytes[2]);
    bytes = bytes.subspan(3);
    const std::span<const std::uint8_t> piece = bytes.first(std::min(length, bytes.size()));
    take(what, std::string(piece.begin(), piece.end()));
    bytes = bytes.subspan(piece.size());
  }
}

}  // namespace wb::test
