#include "client/wbctl/plan/readable.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wb {

std::string ReadableBytes(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits.at(unit));
}

std::string ReadableSeconds(double seconds) {
  if (seconds >= 1 || seconds == 0) return absl::StrFormat("%.3f s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.1f ms", seconds * 1e3);
  return absl::StrFormat("%.1f us", seconds * 1e6);
}

std::string Count(std::size_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string FirstOf(std::span<const std::string> names) {
  constexpr std::size_t kMaxNamed = 4;
  const std::span<const std::string> named = names.first(std::min(names.size(), kMaxNamed));
  return absl::StrCat(absl::StrJoin(named.begin(), named.end(), ", "),
                      names.size() > kMaxNamed ? ", ..." : "");
}

const char* NameOf(Direction direction) {
  return direction == Direction::kOut ? "out" : "in";
}

void WriteLine(std::ostream& out, const char* name, const std::string& value) {
  out << absl::StreamFormat("%-14s %s\n", name, value);
}

}  // namespace wb
