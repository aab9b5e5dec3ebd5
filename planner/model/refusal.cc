#include "planner/model/refusal.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace wb {
namespace {

// Room for the last line, "and N more".
constexpr std::size_t kTailBytes = 64;

// The longest prefix of at most `bytes` bytes that does not cut a UTF-8 sequence.
std::string_view CutUtf8(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

absl::Status ToStatus(const Refusals& refusals) {
  if (refusals.empty()) return absl::OkStatus();
  std::string text;
  std::size_t told = 0;
  for (const Refusal& refusal : refusals) {
    const std::size_t room = kMaxStatusBytes - kTailBytes - text.size();
    const bool fits = refusal.text.size() + 1 <= room;
    if (told == kMaxReasonsInStatus || (!fits && told > 0)) break;
    if (told > 0) text.push_back('\n');
    text.append(CutUtf8(refusal.text, room));
    ++told;
  }
  if (told < refusals.size()) absl::StrAppend(&text, "\nand ", refusals.size() - told, " more");
  return absl::InvalidArgumentError(text);
}

}  // namespace wb
