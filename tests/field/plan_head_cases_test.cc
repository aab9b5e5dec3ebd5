// Faults seen in the field, as far as planning meets them: what a layout file with the case's
// values is planned as, or why it is refused. Bytes move through memory by the slow walk of
// tests/support/byte_walk.h where a value says more than a box.
// Here: heads and ranks.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/field/plan_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using nlohmann::ordered_json;
using test::AnyMentions;
using test::JobBuilder;
using test::MustPlan;
using test::MustRefuse;
using test::Planned;
using test::Received;
using test::Rows;
using test::RowsByWorker;

// Trainers hold equal rows of a tensor [rows, columns].
JobBuilder RowTrainers(const std::string& tensor, std::int64_t rows, std::int64_t columns, int n) {
  JobBuilder builder;
  builder.AddTensor(tensor, Dtype::kBf16, {rows, columns});
  for (int r = 0; r < n; ++r) {
    builder.Trainer(r, "t0").Holds(tensor, {rows * r / n, 0}, {rows * (r + 1) / n, columns});
  }
  return builder;
}

TEST_CASE("KV heads are replicated over more ranks than heads, each rank by its own head",
          "[field][case-4]") {
  JobBuilder builder = RowTrainers("k_proj", 512, 2, 4);
  for (int r = 0; r < 8; ++r) {
    builder.Rollout("e", r, "r0").Holds("k_proj", {128 * (r / 2), 0}, {128 * (r / 2) + 128, 2});
  }
  const Planned planned = MustPlan(builder.Json());
  const auto rows = RowsByWorker(planned, "k_proj");
  for (int r = 0; r < 8; ++r) {
    REQUIRE(rows.at("e/" + std::to_string(r)) == Rows(128 * (r / 2), 128 * (r / 2) + 128));
  }
}

TEST_CASE("heads cut in half are planned as declared, unless elements miss or have two owners",
          "[field][case-4]") {
  // 64 rows a rank: the file says so, and every element is there once.
  JobBuilder halves = RowTrainers("k_proj", 512, 2, 4);
  for (int r = 0; r < 8; ++r) {
    halves.Rollout("e", r, "r0").Holds("k_proj", {64 * r, 0}, {64 * r + 64, 2});
  }
  REQUIRE(MustPlan(halves.Json()).plan.bytes == 512 * 2 * 2);

  const auto trainers = [](std::int64_t step, std::int64_t extent) {
    JobBuilder builder;
    builder.AddTensor("k_proj", Dtype::kBf16, {512, 2});
    for (int r = 0; r < 8; ++r) {
      const std::int64_t lo = step * r;
      builder.Trainer(r, "t0").Holds("k_proj", {lo, 0},
                                     {std::min<std::int64_t>(512, lo + extent), 2});
    }
    builder.Rollout("e", 0, "r0").Holds("k_proj", {0, 0}, {512, 2});
    return builder.Json();
  };
  const Refusals missing = MustRefuse(trainers(64, 32));
  REQUIRE(AnyMentions(missing, {"k_proj", "[32,0]..[64,2]", "e/0"}));
  const Refusals doubly = MustRefuse(trainers(64, 128));
  REQUIRE(
      AnyMentions(doubly, {"k_proj", "policy/0", "policy/1", "[0,0]..[128,2]", "[64,0]..[192,2]"}));
}

TEST_CASE("a norm weight per KV head follows the heads, not the ranks", "[field][case-5]") {
  JobBuilder builder;
  builder.AddTensor("k_norm", Dtype::kFp32, {32});
  builder.Trainer(0, "t0").Holds("k_norm", {0}, {32});
  for (int r = 0; r < 16; ++r) {
    builder.Rollout("e", r, "r0").Holds("k_norm", {4 * (r / 2)}, {4 * (r / 2) + 4});
  }
  const Planned planned = MustPlan(builder.Json());
  const auto rows = RowsByWorker(planned, "k_norm");
  for (int r = 0; r < 16; ++r) {
    REQUIRE(rows.at("e/" + std::to_string(r)) == Rows(4 * (r / 2), 4 * (r / 2) + 4));
  }
  REQUIRE(rows.at("e/15") == std::vector<std::int64_t>{28, 29, 30, 31});
}

TEST_CASE("a norm weight cut into 2 elements a rank is refused where that leaves gaps",
          "[field][case-5]") {
  JobBuilder builder;
  builder.AddTensor("k_norm", Dtype::kFp32, {32});
  for (int r = 0; r < 8; ++r) builder.Trainer(r, "t0").Holds("k_norm", {4 * r}, {4 * r + 2});
  builder.Rollout("e", 0, "r0").Holds("k_norm", {0}, {32});
  REQUIRE(AnyMentions(MustRefuse(builder.Json()), {"k_norm", "[2]..[4]", "e/0"}));
}

JobBuilder GateUp() {
  JobBuilder builder;
  builder.AddTensor("gate_up", Dtype::kInt32, {8});
  builder.Trainer(0, "t0").Holds("gate_up", {0}, {8});
  for (int r = 0; r < 4; ++r) builder.Rollout("e", r, "r0").Holds("gate_up", {2 * r}, {2 * r + 2});
  return builder;
}

TEST_CASE("a rank that is left out is refused, never taken for 0", "[field][case-6]") {
  ordered_json file = GateUp().Json();
  const int worker = GENERATE(1, 3);  // e/0 and e/2
  file["workers"][static_cast<std::size_t>(worker)].erase("rank");
  REQUIRE(AnyMentions(MustRefuse(file), {"rank"}));
}

TEST_CASE("with ranks given, four destinations differ pairwise and hold all rows",
          "[field][case-6]") {
  const Planned planned = MustPlan(GateUp().Json());
  const auto value = [](const Tensor&, const Index& at, std::uint64_t) {
    return static_cast<std::uint64_t>(at[0]);
  };
  std::set<std::vector<std::int32_t>> buffers;
  std::set<std::int32_t> all;
  for (int r = 0; r < 4; ++r) {
    const auto buffer = Received<std::int32_t>(planned, "e/" + std::to_string(r), value);
    buffers.insert(buffer);
    all.insert(buffer.begin(), buffer.end());
  }
  REQUIRE(buffers.size() == 4);
  REQUIRE(all == std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

}  // namespace
}  // namespace wb
