#include <string>
#include <vector>

#include "proto/convert.h"
#include "proto/door/names.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

TEST_CASE("Every status code and its text survive the wire", "[proto]") {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code),
                              code == 0 ? "" : "rank 3 is late");
    CHECK(StatusFromProto(ToProto(status)) == status);
  }
}

TEST_CASE("Details travel beside the text", "[proto]") {
  const std::vector<std::string> lines = {"engine0: OK", "engine1: UNAVAILABLE rank 2", ""};
  const absl::Status status = WithDetails(absl::AbortedError("one group failed"), lines);
  const v1::Status wire = ToProto(status);
  REQUIRE(wire.details_size() == 3);
  CHECK(wire.details(1) == lines[1]);
  CHECK(StatusFromProto(wire) == status);
  CHECK(WithDetails(absl::OkStatus(), lines).ok());
  CHECK(ToProto(absl::AbortedError("x")).details().empty());
}

TEST_CASE("An unknown status code is UNKNOWN and named", "[proto]") {
  for (const int code : {-1, 17, 2147483647}) {
    v1::Status wire;
    wire.set_code(code);
    wire.set_message("odd");
    const absl::Status status = StatusFromProto(wire);
    CHECK(status.code() == absl::StatusCode::kUnknown);
    CHECK(std::string(status.message()) == "status code " + std::to_string(code) + ": odd");
  }
}

TEST_CASE("Status texts on the wire are bounded and UTF-8", "[proto]") {
  const std::string long_text(100'000, 'x');
  CHECK(ToProto(absl::InternalError(long_text)).message().size() == kMaxStatusBytes);
  CHECK(ToProto(absl::InternalError("a\xFF\xC3"
                                    "b"))
            .message() == "a??b");
  std::string euros(kMaxStatusBytes - 1, 'x');
  euros += "\xE2\x82\xAC";
  CHECK(ToProto(absl::InternalError(euros)).message() == std::string(kMaxStatusBytes - 1, 'x'));
  v1::Status wire;
  wire.set_code(13);
  wire.set_message(long_text);
  for (int i = 0; i < 100; ++i) wire.add_details(long_text);
  const absl::Status status = StatusFromProto(wire);
  CHECK(status.message().size() == kMaxStatusBytes);
  CHECK(ToProto(status).details_size() == 1);
  CHECK(ToProto(status).ByteSizeLong() < 3 * kMaxStatusBytes);
}

}  // namespace
}  // namespace wb
