#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/utf8.h"

namespace wb {

// How what comes from outside is shown in a text of ours. Stateless.

/// By which a terminal could be told what to do.
[[nodiscard]] inline bool IsControl(std::uint32_t code_point) {
  return code_point < 0x20U || (code_point >= 0x7FU && code_point < 0xA0U);
}

/// A text as one line of a log or a table: newlines become "; ", other control characters and
/// broken UTF-8 "?".
[[nodiscard]] inline std::string OneLine(std::string_view text) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeUtf8(text.substr(at));
    if (text[at] == '\n') {
      line += "; ";
    } else if (point.bytes == 0 || IsControl(point.value)) {
      line += '?';
    } else {
      line += text.substr(at, point.bytes);
    }
    at += std::max<std::size_t>(point.bytes, 1);
  }
  return line;
}

/// The same of about the first 80 bytes, with "..." after them where there are more.
[[nodiscard]] inline std::string Excerpt(std::string_view text) {
  constexpr std::size_t kMost = 80;
  if (text.size() <= kMost) return OneLine(text);
  std::size_t end = kMost;
  while (end > kMost - 4 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return OneLine(text.substr(0, end)) + "...";
}

}  // namespace wb
