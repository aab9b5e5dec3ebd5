#include "daemon/log/repeated_lines.h"

#include <algorithm>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace wb {
namespace {

// Of a line, what tells its kind: nobody needs more, and texts from outside may be long.
constexpr std::size_t kKindBytes = 512;

bool IsNumber(std::string_view word) {
  if (word.substr(0, 2) == "0x") return true;
  return std::all_of(word.begin(), word.end(), absl::ascii_isxdigit) &&
         std::any_of(word.begin(), word.end(), absl::ascii_isdigit);
}

/// The line with # for each number.
std::string KindOf(std::string_view line) {
  line = line.substr(0, kKindBytes);
  std::string kind;
  while (!line.empty()) {
    const auto word_end = std::find_if_not(line.begin(), line.end(), absl::ascii_isalnum);
    const auto length = static_cast<std::size_t>(word_end - line.begin());
    const std::string_view word = line.substr(0, std::max<std::size_t>(length, 1));
    kind.append(IsNumber(word) ? "#" : word);
    line.remove_prefix(word.size());
  }
  return kind;
}

std::string Summary(std::string_view last, std::uint64_t times) {
  return absl::StrCat(absl::string_view(last.data(), last.size()), " (repeated ", times,
                      " times, numbers aside)");
}

}  // namespace

bool RepeatedLines::Passes(std::string_view line, Clock::time_point now) {
  std::string name = KindOf(line);
  const bool known = kinds_.contains(name);
  Kind& kind = known || kinds_.size() < kMostKinds ? kinds_[std::move(name)] : others_;
  if (kind.passed.empty() && kind.held_back == 0) kind.end = now + kQuiet;
  const bool room = &kind != &others_ && kind.passed.size() < kMostAlike;
  if (room && kind.passed.insert(std::hash<std::string_view>()(line)).second) return true;
  ++kind.held_back;
  kind.last = line;
  return false;
}

std::vector<std::string> RepeatedLines::TakeOver(Clock::time_point now) {
  std::vector<std::string> summaries;
  for (auto it = kinds_.begin(); it != kinds_.end();) {
    const auto entry = it++;
    if (now < entry->second.end) continue;
    const Kind& kind = entry->second;
    if (kind.held_back > 0) summaries.push_back(Summary(kind.last, kind.held_back));
    kinds_.erase(entry);
  }
  if (others_.held_back > 0 && now >= others_.end) {
    summaries.push_back(absl::StrCat("lines of more than ", kMostKinds,
                                     " kinds in a minute: held back ", others_.held_back,
                                     ", the last of them: ", others_.last));
    others_ = {};
  }
  return summaries;
}

}  // namespace wb
