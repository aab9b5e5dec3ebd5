#include <string>
#include <vector>

#include "planner/model/culprit.h"
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

TEST_CASE("Culprits travel beside the text as ErrorInfo", "[proto]") {
  const std::vector<Culprit> culprits{
      {Culprit::Reason::kLate, "engine0/2", "engine0", "n1", "gpu7", "accept", 1.5},
      {Culprit::Reason::kGone, "", "", "n2", "", "", 0}};
  const absl::Status status = WithCulprits(absl::DeadlineExceededError("not ready"), culprits);
  const v1::Status wire = ToProto(status);
  REQUIRE(wire.infos_size() == 2);
  CHECK(wire.infos(0).reason() == "LATE");
  CHECK(wire.infos(0).domain() == "weightbridge");
  CHECK(wire.infos(0).metadata().at("worker") == "engine0/2");
  CHECK(wire.infos(0).metadata().at("since_seconds") == "1.5");
  CHECK(wire.infos(1).metadata().size() == 2);  // node and since_seconds
  CHECK(StatusFromProto(wire) == status);
}

TEST_CASE("ErrorInfo of others, odd values and too many are not taken for culprits", "[proto]") {
  v1::Status wire;
  wire.set_code(4);
  wire.add_infos()->set_domain("example.com");
  CHECK(CulpritsOf(StatusFromProto(wire)).empty());
  v1::ErrorInfo& odd = *wire.add_infos();
  odd.set_domain("weightbridge");
  odd.set_reason("NEW");
  (*odd.mutable_metadata())["since_seconds"] = "nan";
  (*odd.mutable_metadata())["host"] = std::string(100'000, 'h');
  const std::vector<Culprit> taken = CulpritsOf(StatusFromProto(wire));
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].reason == Culprit::Reason::kLate);
  CHECK(taken[0].since_seconds == 0);
  CHECK(taken[0].host == std::string(256, 'h'));
  for (int i = 0; i < 100; ++i) wire.add_infos()->set_domain("weightbridge");
  CHECK(CulpritsOf(StatusFromProto(wire)).size() == kMaxCulprits);
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
