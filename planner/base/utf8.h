#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wb {

/// One code point of UTF-8 (RFC 3629). `bytes` is 0 where none is encoded.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;
};

namespace utf8_internal {

/// Length of the sequence that a lead byte opens; 0 for a byte that opens none.
inline std::size_t SequenceBytes(unsigned char lead) {
  if (lead < 0x80U) return 1;
  if (lead >= 0xC2U && lead < 0xE0U) return 2;
  if (lead >= 0xE0U && lead < 0xF0U) return 3;
  return lead >= 0xF0U && lead < 0xF5U ? 4 : 0;
}

/// Overlong forms, surrogates and values beyond U+10FFFF are no code points.
inline bool InSequenceRange(std::uint32_t value, std::size_t bytes) {
  if (bytes == 3) return value >= 0x800U && (value < 0xD800U || value > 0xDFFFU);
  return bytes != 4 || (value >= 0x10000U && value <= 0x10FFFFU);
}

}  // namespace utf8_internal

/// The code point at the start of `text`, which is not empty.
[[nodiscard]] inline CodePoint DecodeUtf8(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = utf8_internal::SequenceBytes(lead);
  if (bytes == 0 || bytes > text.size()) return {};
  if (bytes == 1) return {lead, 1};
  std::uint32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (next & 0x3FU);
  }
  if (!utf8_internal::InSequenceRange(value, bytes)) return {};
  return {value, bytes};
}

/// Where `text` stops being valid UTF-8; nothing when it is valid to its end.
[[nodiscard]] inline std::optional<std::size_t> Utf8Fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeUtf8(text.substr(at));
    if (point.bytes == 0) return at;
    at += point.bytes;
  }
  return std::nullopt;
}

}  // namespace wb
