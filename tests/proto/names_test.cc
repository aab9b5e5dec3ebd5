#include "proto/door/names.h"

#include <string>

#include "planner/base/utf8.h"
#include "planner/model/layout.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using std::string_literals::operator""s;

TEST_CASE("Tensor and param names may hold any printable characters", "[proto]") {
  for (const std::string& name :
       {"q"s, "model.layers.0.mlp.gate_proj.weight"s, "a b"s, "a/b%2F\"\\"s,
        "gewicht.\xC3\xA4\xE9\x87\x8D\xF0\x9F\x8C\x89"s, std::string(kMaxNameBytes, 'x')}) {
    INFO(name);
    CHECK_FALSE(NameFault(name).has_value());
    CHECK(Shown(name) == name);
  }
}

TEST_CASE("A name that is empty, too long or not printable is told so", "[proto]") {
  CHECK(NameFault("") == "is empty, want a name");
  CHECK(NameFault(std::string(kMaxNameBytes + 1, 'x')) == "has 1025 bytes, want at most 1024");
  CHECK(NameFault("a\nb") == "has a control character at byte 1, want printable ones");
  CHECK(NameFault("a\0b"s) == "has a control character at byte 1, want printable ones");
  CHECK(NameFault("\x7F") == "has a control character at byte 0, want printable ones");
  CHECK(NameFault("a\xC2\x85") == "has a control character at byte 1, want printable ones");
}

TEST_CASE("Broken UTF-8 is told with its place", "[proto]") {
  for (const std::string& tail :
       {"\xFF"s, "\x80"s, "\xC3"s, "\xC0\xAF"s, "\xE0\x80\xAF"s, "\xED\xA0\x80"s,
        "\xF4\x90\x80\x80"s, "\xF0\x9F\x8C"s, "\xE9\x87z"s}) {
    CHECK(NameFault("ab" + tail) == "is not UTF-8 at byte 2");
    CHECK(Utf8Fault("ab" + tail) == 2U);
  }
  CHECK_FALSE(Utf8Fault("a\nb").has_value());
}

TEST_CASE("Group and node names are of letters, digits, dot, underscore and dash", "[proto]") {
  CHECK_FALSE(TokenFault("Engine_0.a-b").has_value());
  CHECK(TokenFault("") == "is empty, want a name");
  CHECK(TokenFault("a/0") == "has a character at byte 1 that is none of A-Z a-z 0-9 . _ -");
  CHECK(TokenFault("\xC3\xA4").has_value());
  CHECK(TokenFault(std::string(2000, 'x')).has_value());
}

TEST_CASE("A name that is not printable is shown escaped, and a long one cut", "[proto]") {
  CHECK(Shown("") == "\"\"");
  CHECK(Shown("a\nb\xFF") == "\"a\\nb\\377\"");
  CHECK(Shown(std::string(5000, 'x')) == std::string(kMaxNameBytes, 'x') + "...");
}

}  // namespace
}  // namespace wb
