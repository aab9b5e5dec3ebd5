#include "planner/base/status_macros.h"

#include <memory>
#include <string>
#include <utility>

#include "tests/support/catch.h"

namespace wb {
namespace {

absl::Status Fail() {
  return absl::DataLossError("gone");
}

absl::Status Count(const absl::Status& status, int& evaluated) {
  ++evaluated;
  return status;
}

TEST_CASE("WB_RETURN_IF_ERROR returns the failed status, and evaluates once", "[base]") {
  int evaluated = 0;
  bool went_on = false;
  const auto run = [&](const absl::Status& status) -> absl::Status {
    WB_RETURN_IF_ERROR(Count(status, evaluated));
    went_on = true;
    return absl::OkStatus();
  };
  CHECK(run(Fail()) == Fail());
  CHECK(evaluated == 1);
  CHECK_FALSE(went_on);
  CHECK(run(absl::OkStatus()).ok());
  CHECK(evaluated == 2);
  CHECK(went_on);
}

TEST_CASE("WB_RETURN_IF_ERROR is one statement of a loop without braces", "[base]") {
  const auto run = [](int fail_at) -> absl::StatusOr<int> {
    int done = 0;
    for (int i = 0; i < 4; ++i)
      WB_RETURN_IF_ERROR((done = i, i == fail_at ? Fail() : absl::OkStatus()));
    return done;
  };
  CHECK(*run(9) == 3);
  CHECK(run(2).status() == Fail());
}

TEST_CASE("WB_ASSIGN_OR_RETURN moves the value out, or returns the status", "[base]") {
  const auto run = [](absl::StatusOr<std::unique_ptr<int>> from) -> absl::StatusOr<int> {
    WB_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, std::move(from));
    return *value;
  };
  CHECK(*run(std::make_unique<int>(5)) == 5);
  CHECK(run(Fail()).status() == Fail());
}

}  // namespace
}  // namespace wb
