#include "planner/model/refusal.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

#include "tests/support/catch.h"

namespace wb {
namespace {

Refusals Numbered(std::size_t count, const std::string& tail = "") {
  Refusals refusals;
  for (std::size_t i = 0; i < count; ++i) {
    refusals.push_back({"box", "", "", absl::StrCat("reason ", i, tail)});
  }
  return refusals;
}

TEST_CASE("No refusal is an OK status", "[model]") {
  CHECK(ToStatus({}).ok());
}

TEST_CASE("Refusals become one status text, a reason a line", "[model]") {
  const absl::Status status = ToStatus(Numbered(3));
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message() == "reason 0\nreason 1\nreason 2");
}

TEST_CASE("Beyond twenty reasons a status tells how many there are more", "[model]") {
  const std::string exact(ToStatus(Numbered(20)).message());
  CHECK(exact.find("more") == std::string::npos);
  const std::string more(ToStatus(Numbered(25)).message());
  CHECK(std::count(more.begin(), more.end(), '\n') == 20);
  CHECK(more.substr(more.rfind('\n')) == "\nand 5 more");
}

TEST_CASE("A status text never has more than 8 KiB", "[model]") {
  const std::string many(ToStatus(Numbered(20, std::string(1000, 'x'))).message());
  CHECK(many.size() <= kMaxStatusBytes);
  CHECK(many.substr(many.rfind('\n')) == "\nand 12 more");
  const std::string one(ToStatus(Numbered(1, std::string(100'000, 'x'))).message());
  CHECK(one.size() <= kMaxStatusBytes);
  CHECK(one.substr(0, 9) == "reason 0x");
}

TEST_CASE("A long status text is not cut inside a character", "[model]") {
  for (std::size_t pad = 0; pad < 4; ++pad) {
    std::string tail(pad, 'x');
    for (int i = 0; i < 3000; ++i) tail += "\xE2\x82\xAC";  // the euro sign, three bytes
    const std::string text(ToStatus(Numbered(1, tail)).message());
    INFO("pad " << pad);
    REQUIRE(text.size() > 8000);
    CHECK(text.substr(text.size() - 3) == "\xE2\x82\xAC");
  }
}

}  // namespace
}  // namespace wb
