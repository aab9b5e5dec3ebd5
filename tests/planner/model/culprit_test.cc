#include "planner/model/culprit.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace wb {
namespace {

const Culprit kLate{Culprit::Reason::kLate, "engine0/2", "engine0", "n1",
                    "gpu-7.example",        "accept",    1.5};
const Culprit kGone{Culprit::Reason::kGone, "", "", "n2", "", "", 0};

TEST_CASE("Culprits travel beside a status and leave its text alone", "[model]") {
  const absl::Status plain = absl::DeadlineExceededError("not ready");
  const std::vector<Culprit> both{kLate, kGone};
  const absl::Status status = WithCulprits(plain, both);
  CHECK(status.message() == plain.message());
  CHECK(CulpritsOf(status) == both);
  CHECK(CulpritsOf(plain).empty());
  CHECK(WithCulprits(status, {}) == plain);
  CHECK(WithCulprits(absl::OkStatus(), both).ok());
}

TEST_CASE("A status that is reworded keeps its culprits", "[model]") {
  const std::vector<Culprit> late{kLate};
  const absl::Status status = WithCulprits(absl::DeadlineExceededError("not ready"), late);
  const absl::Status reworded = Reworded(status, "job gqa: not ready");
  CHECK(reworded.code() == status.code());
  CHECK(reworded.message() == "job gqa: not ready");
  CHECK(CulpritsOf(reworded) == late);
}

TEST_CASE("Of many culprits the first travel, and odd names break none", "[model]") {
  Culprit odd = kGone;
  odd.host = "a; b\nc";
  std::vector<Culprit> many(100, odd);
  const std::vector<Culprit> kept = CulpritsOf(WithCulprits(absl::AbortedError("x"), many));
  REQUIRE(kept.size() == kMaxCulprits);
  odd.host = "a??b?c";
  CHECK(kept.front() == odd);
  CHECK(kept.back() == odd);
}

}  // namespace
}  // namespace wb
