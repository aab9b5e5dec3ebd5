#include "daemon/log/repeated_lines.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"

namespace wb {
namespace {

using Clock = RepeatedLines::Clock;
using Lines = std::vector<std::string>;
using namespace std::chrono_literals;

TEST_CASE("A line passes once a minute, what was held back is counted, others are not held back",
          "[daemon][log]") {
  RepeatedLines lines;
  const Clock::time_point start;
  REQUIRE(lines.Passes("a", start));
  REQUIRE_FALSE(lines.Passes("a", start + 1s));
  REQUIRE_FALSE(lines.Passes("a", start + 59s));
  REQUIRE(lines.Passes("b", start + 59s));
  REQUIRE(lines.TakeOver(start + 59s).empty());
  REQUIRE(lines.TakeOver(start + 60s) == Lines{"a (repeated 2 times, numbers aside)"});
  REQUIRE(lines.TakeAll().empty());
  REQUIRE(lines.Passes("a", start + 60s));
}

TEST_CASE("Lines that differ in numbers only are ten a minute", "[daemon][log]") {
  RepeatedLines lines;
  const Clock::time_point start;
  std::size_t passed = 0;
  for (int i = 0; i < 1000; ++i) {
    passed += lines.Passes(absl::StrCat("session=", absl::Hex(i * 7919, absl::kZeroPad16),
                                        " worker policy/", i, " at 0x", absl::Hex(i), " failed"),
                           start);
  }
  REQUIRE(passed == RepeatedLines::kMostAlike);
  REQUIRE(lines.Passes("session=0 worker engine0/1 at 0x2 failed", start));  // another group
  const Lines told = lines.TakeAll();
  REQUIRE(told.size() == 1);
  REQUIRE(absl::StrContains(told[0], "worker policy/999 "));
  REQUIRE(absl::EndsWith(told[0], " (repeated 990 times, numbers aside)"));
}

TEST_CASE("A peer that is down and retried every 10 ms for a minute is eleven lines",
          "[daemon][log][field][case-160]") {
  RepeatedLines lines;
  const Clock::time_point start;
  Lines written;
  for (int i = 0; i < 6000; ++i) {
    const Clock::time_point now = start + i * 10ms;
    const std::string line = absl::StrCat("peer 10.0.0.7:", 40000 + i, " is down, try ", i);
    for (const std::string& summary : lines.TakeOver(now)) written.push_back(summary);
    if (lines.Passes(line, now)) written.push_back(line);
  }
  for (const std::string& summary : lines.TakeOver(start + 60s)) written.push_back(summary);
  REQUIRE(written.size() == RepeatedLines::kMostAlike + 1);
  REQUIRE(absl::EndsWith(written.back(), " (repeated 5990 times, numbers aside)"));
}

TEST_CASE("Lines that all differ are bounded in a minute, counted, and not kept for ever",
          "[daemon][log]") {
  RepeatedLines lines;
  const Clock::time_point start;
  std::size_t passed = 0;
  std::string name;
  for (std::size_t i = 0; i < 10 * RepeatedLines::kMostKinds; ++i) {
    name += "x";
    passed +=
        lines.Passes(absl::StrCat("node ", name.substr(i / 2), std::string(i % 2, 'y')), start);
  }
  REQUIRE(passed == RepeatedLines::kMostKinds);
  const Lines told = lines.TakeOver(start + 60s);
  REQUIRE(told.size() == 1);
  REQUIRE(absl::StrContains(told[0], absl::StrCat("held back ", 9 * RepeatedLines::kMostKinds)));
  REQUIRE(lines.Passes("node x", start + 60s));
}

}  // namespace
}  // namespace wb
