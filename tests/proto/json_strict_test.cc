#include "proto/json_strict.h"

#include <string>
#include <utility>
#include <vector>

#include "planner/base/utf8.h"
#include "tests/proto/layout_cases.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

using test::Kinds;
using test::Texts;
using Wanted = std::vector<std::string>;

Refusals Faults(const std::string& json) {
  Reasons reasons;
  CheckStrictJson(json, nullptr, reasons);
  return std::move(reasons).Take();
}

Refusals FileFaults(const std::string& json) {
  Reasons reasons;
  CheckStrictJson(json, v1::LayoutFile::descriptor(), reasons);
  return std::move(reasons).Take();
}

TEST_CASE("Plain JSON passes the strict reading", "[proto]") {
  CHECK(Faults(R"({"a": [1, -2, 3.5, true, "x"], "b": {"a": {}}})").empty());
  CHECK(FileFaults(test::GqaFile().dump()).empty());
}

TEST_CASE("A key that is there twice is told with line, column and path", "[proto]") {
  CHECK(Texts(Faults("{\"a\": 1,\n \"b\": [{}, {\"c\": 1, \"d\": 2, \"c\": 3}],\n \"a\": 2}")) ==
        Wanted{"layout file: line 2, column 31: b[1].c is there twice, want each key once",
               "layout file: line 3, column 4: a is there twice, want each key once"});
  CHECK(Faults("{\"a\": 1, \"a\": 2, \"a\": 3}").size() == 2);
}

TEST_CASE("Keys of different objects and different names do not collide", "[proto]") {
  CHECK(Faults(R"({"a": {"a": 1}, "b": {"a": 1}, "A": 1})").empty());
}

TEST_CASE("The two spellings of one field are one key, but two tensors' names", "[proto]") {
  CHECK(
      Texts(FileFaults(R"({"workers": [{"params": [{"offset_bytes": 1, "offsetBytes": 2}]}]})")) ==
      Wanted{"layout file: line 1, column 58: workers[0].params[0].offset_bytes is there twice, "
             "want each key once"});
  CHECK(FileFaults(R"({"tensors": {"offset_bytes": {}, "offsetBytes": {}}})").empty());
}

TEST_CASE("Every field that the message does not have is told by name", "[proto]") {
  CHECK(
      Texts(FileFaults("{\"jobs\": 1,\n\"workers\": [{\"parms\": [{\"x\": [[]]}]}],\n\"tensors\": "
                       "{\"params\": {\"Dtype\": 1}}}")) ==
      Wanted{"layout file: line 1, column 7: jobs is no field of LayoutFile",
             "layout file: line 2, column 20: workers[0].parms is no field of Worker",
             "layout file: line 3, column 30: tensors.params.Dtype is no field of Tensor"});
}

TEST_CASE("A value, a list and an object are not taken for one another", "[proto]") {
  CHECK(Texts(FileFaults(R"({"job": ["x"]})")) ==
        Wanted{"layout file: line 1, column 9: job is a list, want one value"});
  CHECK(Texts(FileFaults(R"({"job": {"x": []}})")) ==
        Wanted{"layout file: line 1, column 9: job is an object, want one value"});
  CHECK(Texts(FileFaults(R"({"tensors": {"t": {"shape": 4}}})")) ==
        Wanted{"layout file: line 1, column 30: tensors.t.shape is one value, want a list"});
  CHECK(Texts(FileFaults(R"({"tensors": {"t": {"shape": [[4]]}}})")) ==
        Wanted{"layout file: line 1, column 30: tensors.t.shape[0] is a list, want one value"});
  CHECK(Texts(FileFaults(R"({"workers": {"rank": 0}})")) ==
        Wanted{"layout file: line 1, column 13: workers is an object, want a list"});
  CHECK(Texts(FileFaults(R"({"workers": [[{"rank": 0}], 7]})")) ==
        Wanted{"layout file: line 1, column 14: workers[0] is a list, want an object",
               "layout file: line 1, column 30: workers[1] is one value, want an object"});
  CHECK(Texts(FileFaults(R"({"aliases": {"a": {}}, "tensors": []})")) ==
        Wanted{"layout file: line 1, column 19: aliases.a is an object, want one value",
               "layout file: line 1, column 35: tensors is a list, want an object"});
  CHECK(Texts(FileFaults("[]")) ==
        Wanted{"layout file: line 1, column 1: the whole is a list, want an object"});
}

TEST_CASE("Every null is told with its path", "[proto]") {
  CHECK(Texts(Faults("{\"job\": null, \"workers\": [{\"rank\": null}, null]}")) ==
        Wanted{"layout file: line 1, column 12: job is null, want a value or no key",
               "layout file: line 1, column 39: workers[0].rank is null, want a value or no key",
               "layout file: line 1, column 46: workers[1] is null, want a value or no key"});
  CHECK(Texts(Faults("null")) ==
        Wanted{"layout file: line 1, column 4: the whole is null, want a value or no key"});
}

TEST_CASE("What is not JSON is refused with its place", "[proto]") {
  for (const char* text :
       {"", "{", "{\"a\": 1,}", "[1,]", "{\"a\": NaN}", "{\"a\": Infinity}", "{a: 1}", "{'a': 1}",
        "{\"a\": 1} x", "// c\n{}", "{/* c */}", "{\"a\": 01}", "{\"a\": +1}", "{\"a\": 0x10}",
        "{\"a\": \"\n\"}", "{\"a\": 1e999}", "{\"a\" 1}", "{\"a\": tru}", "{\"a\": \"\\ud800\"}"}) {
    INFO(text);
    const Refusals refusals = Faults(text);
    REQUIRE(refusals.size() == 1);
    CHECK(refusals[0].kind == "json");
    CHECK(refusals[0].text.find("layout file: ") == 0);
    CHECK((refusals[0].text.find("line ") != std::string::npos ||
           refusals[0].text.find("number overflow") != std::string::npos));
  }
}

TEST_CASE("Bytes that are not UTF-8 are refused, and the refusal is UTF-8", "[proto]") {
  const Refusals refusals = Faults("{\"a\xFF\xFE\": 1}");
  REQUIRE(refusals.size() == 1);
  CHECK_FALSE(Utf8Fault(refusals[0].text).has_value());
}

TEST_CASE("What a syntax error quotes of a long text is cut", "[proto]") {
  const Refusals refusals = Faults("[\"" + std::string(100'000, 'x'));
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].text.size() < 400);
}

TEST_CASE("Nesting is limited", "[proto]") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(Faults(nested(kMaxJsonDepth)).empty());
  CHECK(Texts(Faults(nested(kMaxJsonDepth + 1))) ==
        Wanted{"layout file: line 1, column 33: more than 32 levels of nesting"});
  CHECK(Kinds(Faults(nested(1'000'000))) == Wanted{"limit"});
  CHECK(Kinds(Faults(std::string(1'000'000, '['))) == Wanted{"limit"});
}

TEST_CASE("The number of objects is limited", "[proto]") {
  std::string text = "[{}";
  text.reserve(3 * kMaxJsonObjects + 16);
  for (std::size_t i = 0; i < kMaxJsonObjects; ++i) text += ",{}";
  text += "]";
  const Refusals refusals = Faults(text);
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].kind == "limit");
  CHECK(refusals[0].text.find("more than 8388608 objects") != std::string::npos);
}

TEST_CASE("The size of a text is limited", "[proto]") {
  const std::string text(kMaxJsonBytes + 1, ' ');
  CHECK(Texts(Faults(text)) == Wanted{"layout file: 268435457 bytes, want at most 268435456"});
}

TEST_CASE("Reasons beyond the limit are counted, not kept", "[proto]") {
  std::string text = "[null";
  for (std::size_t i = 0; i < 2 * kMaxReasons; ++i) text += ",null";
  text += "]";
  const Refusals refusals = Faults(text);
  CHECK(refusals.size() == kMaxReasons + 1);
  CHECK(refusals.back().kind == "limit");
}

}  // namespace
}  // namespace wb
