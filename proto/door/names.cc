#include "proto/door/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "planner/base/one_line.h"
#include "planner/base/utf8.h"
#include "planner/model/layout.h"

namespace wb {
namespace {

std::optional<std::string> LengthFault(std::string_view name) {
  if (name.empty()) return "is empty, want a name";
  if (name.size() <= kMaxNameBytes) return std::nullopt;
  return absl::StrCat("has ", name.size(), " bytes, want at most ", kMaxNameBytes);
}

}  // namespace

std::optional<std::string> NameFault(std::string_view name) {
  if (std::optional<std::string> fault = LengthFault(name)) return fault;
  for (std::size_t at = 0; at < name.size();) {
    const CodePoint point = DecodeUtf8(name.substr(at));
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
