#include "daemon/rpc/repeated_lines.h"

#include <string>

#include "tests/support/catch.h"

namespace wb {
namespace {

TEST_CASE("A line passes once a minute with a count, others are not held back by it",
          "[rpc][log]") {
  RepeatedLines lines;
  const RepeatedLines::Clock::time_point start;
  REQUIRE(lines.Passes("a", start) == "");
  REQUIRE_FALSE(lines.Passes("a", start + std::chrono::seconds(1)).has_value());
  REQUIRE_FALSE(lines.Passes("a", start + std::chrono::seconds(59)).has_value());
  REQUIRE(lines.Passes("b", start + std::chrono::seconds(59)) == "");
  REQUIRE(lines.Passes("a", start + std::chrono::seconds(60)) ==
          " (and 2 times since it was last logged)");
  REQUIRE(lines.Passes("a", start + std::chrono::seconds(120)) == "");
}

TEST_CASE("Lines that all differ are not kept for ever", "[rpc][log]") {
  RepeatedLines lines;
  const RepeatedLines::Clock::time_point start;
  for (std::size_t i = 0; i < 10 * RepeatedLines::kMostLines; ++i) {
    CAPTURE(i);
    REQUIRE(lines.Passes(std::to_string(i), start) == "");
  }
}

}  // namespace
}  // namespace wb
