#include "planner/base/one_line.h"

#include <string>

#include "tests/support/catch.h"

namespace wb {
namespace {

TEST_CASE("What others say is one line that no terminal obeys", "[planner]") {
  CHECK(OneLine("") == "");
  CHECK(OneLine("step 30: \xc3\xa9t\xc3\xa9") == "step 30: \xc3\xa9t\xc3\xa9");
  CHECK(OneLine("a\nb\r\tc") == "a; b??c");
  CHECK(OneLine("\x1b[31mred\x7f") == "?[31mred?");
  CHECK(OneLine("\xc2\x9b"
                "31m") == "?31m");  // the same in one code point
  CHECK(OneLine("cut \xe2\x82") == "cut ??");
}

TEST_CASE("A long text is cut between two characters", "[planner]") {
  CHECK(Excerpt(std::string(80, 'x')) == std::string(80, 'x'));
  CHECK(Excerpt(std::string(10'000, 'x')) == std::string(80, 'x') + "...");
  CHECK(Excerpt(std::string(79, 'x') + "\xc3\xa9t") == std::string(79, 'x') + "...");
  CHECK(Excerpt(std::string(100, '\xa9')) == std::string(76, '?') + "...");
}

}  // namespace
}  // namespace wb
