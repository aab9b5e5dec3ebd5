// Cases 22, 26, 43 and 90: experts, one by one and stacked.
#include <map>

#include "tests/field/rehearse_fixture.h"

namespace wb::test {
namespace {

constexpr std::int64_t kExperts = 8;

std::string ExpertName(std::int64_t expert) {
  return "experts." + std::to_string(expert) + ".weight";
}

/// Experts [first, first + count), each a tensor [2, 3], stacked in one param.
ParamSpec StackedExperts(std::int64_t first, std::int64_t count) {
  ParamSpec param{.name = "w13", .shape = {count, 2, 3}};
  for (std::int64_t i = 0; i < count; ++i) {
    param.pieces.push_back(
        {.tensor = ExpertName(first + i), .lo = {0, 0}, .hi = {2, 3}, .at = {i, 0, 0}});
  }
  return param;
}

TEST_CASE("each rank of each engine gets its own experts, and no move more", "[field][case-22]") {
  LayoutFileSpec file{.tensors = {}, .workers = {}};
  CheckpointFile checkpoint;
  for (std::int64_t e = 0; e < kExperts; ++e) {
    file.tensors.push_back({ExpertName(e), "FP32", {2, 3}});
    checkpoint.Add(ExpertName(e), "F32", {2, 3}, std::vector<float>(6, static_cast<float>(e)));
  }
  for (std::int32_t t = 0; t < 2; ++t) {
    file.workers.push_back({.group = "policy", .rank = t, .params = {StackedExperts(4 * t, 4)}});
  }
  for (const char* engine : {"engine0", "engine1"}) {
    for (std::int32_t r = 0; r < 4; ++r) {
      file.workers.push_back({.group = engine, .rank = r, .params = {StackedExperts(2 * r, 2)}});
    }
  }

  std::map<std::string, int> moves;
  const nlohmann::json plan = Planned(file);
  for (const nlohmann::json& move : plan["moves"]) {
    ++moves[move["dst"].get<std::string>()];
  }
  CHECK(plan["summary"]["moves"] == 16);
  CHECK(moves.size() == 8);
  for (const auto& [worker, count] : moves) {
    INFO(worker);
    CHECK(count == 2);
  }
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  for (const char* engine : {"engine0", "engine1"}) {
    CHECK(Floats(rehearsal, engine, 0, "w13") == Repeat<float>({0, 1}, 6));
    CHECK(Floats(rehearsal, engine, 1, "w13") == Repeat<float>({2, 3}, 6));
    CHECK(Floats(rehearsal, engine, 2, "w13") == Repeat<float>({4, 5}, 6));
    CHECK(Floats(rehearsal, engine, 3, "w13") == Repeat<float>({6, 7}, 6));
  }
}

TEST_CASE("experts stacked in two trainers land stacked in one rollout", "[field][case-26]") {
  const LayoutFileSpec file{
      .tensors = {{"experts", "FP32", {4, 2, 3}}},
      .workers = {
          {.group = "policy", .rank = 0, .params = {Whole("w", "experts", {0, 0, 0}, {2, 2, 3})}},
          {.group = "policy", .rank = 1, .params = {Whole("w", "experts", {2, 0, 0}, {4, 2, 3})}},
          {.group = "engine0", .params = {Whole("w", "experts", {0, 0, 0}, {4, 2, 3})}}}};
  CheckpointFile checkpoint;
  checkpoint.Add("experts", "F32", {4, 2, 3}, Repeat(CountUp(0, 4), 6));
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  CHECK(Floats(rehearsal, "engine0", 0, "w") == Repeat<float>({0, 1, 2, 3}, 6));
}

TEST_CASE("a tensor cut by experts and by rows is gathered from six strided shards",
          "[field][case-43]") {
  LayoutFileSpec file{.tensors = {{"w", "FP32", {4, 6, 2}}}, .workers = {}};
  for (std::int32_t rank = 0; rank < 6; ++rank) {
    const std::int64_t e = 2 * (rank / 3);
    const std::int64_t h = 2 * (rank % 3);
    file.workers.push_back({.group = "policy",
                            .rank = rank,
                            .params = {Whole("w", "w", {e, h, 0}, {e + 2, h + 2, 2})}});
  }
  file.workers.push_back({.group = "engine0", .params = {Whole("w", "w", {0, 0, 0}, {4, 6, 2})}});
  std::vector<float> values;
  for (int e = 0; e < 4; ++e) {
    for (int h = 0; h < 6; ++h) {
      for (int i = 0; i < 2; ++i) values.push_back(static_cast<float>(100 * e + 10 * h + i));
    }
  }
  CheckpointFile checkpoint;
  checkpoint.Add("w", "F32", {4, 6, 2}, values);
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  CHECK(Floats(rehearsal, "engine0", 0, "w") == values);
}

TEST_CASE("stacked experts offered where single ones are wanted are refused before a byte moves",
          "[field][case-90]") {
  LayoutFileSpec file{
      .tensors = {{"experts", "FP32", {8, 4, 3}}},
      .workers = {{.group = "policy", .params = {Whole("w", "experts", {0, 0, 0}, {8, 4, 3})}}}};
  WorkerFileSpec rollout{.group = "engine0"};
  for (std::int64_t e = 0; e < kExperts; ++e) {
    file.tensors.push_back({ExpertName(e), "FP32", {4, 3}});
    rollout.params.push_back(Whole("e" + std::to_string(e), ExpertName(e), {0, 0}, {4, 3}));
  }
  file.workers.push_back(rollout);
  const std::string reasons = Refused(file);
  for (std::int64_t e = 0; e < kExperts; ++e) CHECK(Contains(reasons, ExpertName(e)));
}

}  // namespace
}  // namespace wb::test
