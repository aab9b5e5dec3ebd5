#include "proto/door/names.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "planner/model/layout.h"

namespace wb {
namespace {

// One code point of UTF-8. `bytes` is 0 where none is encoded.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;
};

// Length of the sequence that a lead byte opens; 0 for a byte that opens none.
std::size_t SequenceBytes(unsigned char lead) {
  if (lead < 0x80U) return 1;
  if (lead >= 0xC2U && lead < 0xE0U) return 2;
  if (lead >= 0xE0U && lead < 0xF0U) return 3;
  return lead >= 0xF0U && lead < 0xF5U ? 4 : 0;
}

// Overlong forms, surrogates and values beyond U+10FFFF are no code points.
bool InSequenceRange(std::uint32_t value, std::size_t bytes) {
  if (bytes == 3) return value >= 0x800U && (value < 0xD800U || value > 0xDFFFU);
  return bytes != 4 || (value >= 0x10000U && value <= 0x10FFFFU);
}

CodePoint Decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = SequenceBytes(lead);
  if (bytes == 0 || bytes > text.size()) return {};
  if (bytes == 1) return {lead, 1};
  std::uint32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (next & 0x3FU);
  }
  if (!InSequenceRange(value, bytes)) return {};
  return {value, bytes};
}

bool IsControl(std::uint32_t value) {
  return value < 0x20U || (value >= 0x7FU && value < 0xA0U);
}

std::optional<std::string> LengthFault(std::string_view name) {
  if (name.empty()) return "is empty, want a name";
  if (name.size() <= kMaxNameBytes) return std::nullopt;
  return absl::StrCat("has ", name.size(), " bytes, want at most ", kMaxNameBytes);
}

}  // namespace

std::optional<std::size_t> Utf8Fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = Decode(text.substr(at));
    if (point.bytes == 0) return at;
    at += point.bytes;
  }
  return std::nullopt;
}

std::optional<std::string> NameFault(std::string_view name) {
  if (std::optional<std::string> fault = LengthFault(name)) return fault;
  for (std::size_t at = 0; at < name.size();) {
    const CodePoint point = Decode(name.substr(at));
    if (point.bytes == 0) return absl::StrCat("is not UTF-8 at byte ", at);
    if (IsControl(point.value)) {
      return absl::StrCat("has a control character at byte ", at, ", want printable ones");
    }
    at += point.bytes;
  }
  return std::nullopt;
}

std::optional<std::string> TokenFault(std::string_view name) {
  if (std::optional<std::string> fault = LengthFault(name)) return fault;
  const auto* const bad = std::find_if_not(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (bad == name.end()) return std::nullopt;
  return absl::StrCat("has a character at byte ", bad - name.begin(),
                      " that is none of A-Z a-z 0-9 . _ -");
}

std::string Shown(std::string_view name) {
  const std::string_view kept = name.substr(0, std::min(name.size(), kMaxNameBytes));
  const std::string_view tail = kept.size() < name.size() ? "..." : "";
  if (!NameFault(kept).has_value()) return absl::StrCat(Absl(kept), Absl(tail));
  return absl::StrCat("\"", absl::CEscape(Absl(kept)), "\"", Absl(tail));
}

}  // namespace wb
