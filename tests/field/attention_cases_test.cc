// Cases 2 to 5 and 21: heads, groups and their order in fused params.
#include "tests/field/rehearse_fixture.h"

namespace wb::test {
namespace {

// 8 query heads and 2 key/value heads of 2 rows each: as a trainer fuses them, 24 rows, per group
// 8 rows of Q, 2 of K and 2 of V.
constexpr std::int64_t kGroups = 2;
constexpr std::int64_t kQueryRows = 8;  // of a group
constexpr std::int64_t kHeadRows = 2;
constexpr std::int64_t kGroupRows = kQueryRows + 2 * kHeadRows;

/// Adds rows [lo, hi) of tensor `name` and of its bias at row `at` of the two params.
void AddRows(ParamSpec& weight,
             ParamSpec& bias,
             const std::string& name,
             std::int64_t lo,
             std::int64_t hi,
             std::int64_t at) {
  weight.pieces.push_back({.tensor = name, .lo = {lo, 0}, .hi = {hi, 2}, .at = {at, 0}});
  bias.pieces.push_back({.tensor = name + ".bias", .lo = {lo}, .hi = {hi}, .at = {at}});
}

/// A trainer rank: its groups one after the other, each Q, K, V.
WorkerFileSpec GroupedTrainer(std::int32_t rank, std::int32_t ranks) {
  const std::int64_t groups = kGroups / ranks;
  ParamSpec weight{.name = "linear_qkv.weight", .shape = {groups * kGroupRows, 2}};
  ParamSpec bias{.name = "linear_qkv.bias", .shape = {groups * kGroupRows}};
  for (std::int64_t local = 0; local < groups; ++local) {
    const std::int64_t group = rank * groups + local;
    const std::int64_t at = local * kGroupRows;
    AddRows(weight, bias, "q", group * kQueryRows, (group + 1) * kQueryRows, at);
    AddRows(weight, bias, "k", group * kHeadRows, (group + 1) * kHeadRows, at + kQueryRows);
    AddRows(weight, bias, "v", group * kHeadRows, (group + 1) * kHeadRows,
            at + kQueryRows + kHeadRows);
  }
  return {.group = "policy", .rank = rank, .params = {weight, bias}};
}

/// A rollout rank: all its Q, then its K, then its V; with more ranks than groups K and V are
/// replicated.
WorkerFileSpec StackedRollout(std::int32_t rank, std::int32_t ranks) {
  const std::int64_t query = kGroups * kQueryRows / ranks;
  const std::int64_t heads = std::max<std::int64_t>(kGroups / ranks, 1);
  const std::int64_t first = rank * kGroups / ranks;
  const std::int64_t lo = first * kHeadRows;
  const std::int64_t hi = (first + heads) * kHeadRows;
  const std::int64_t rows = query + 2 * heads * kHeadRows;
  ParamSpec weight{.name = "qkv_proj.weight", .shape = {rows, 2}};
  ParamSpec bias{.name = "qkv_proj.bias", .shape = {rows}};
  AddRows(weight, bias, "q", rank * query, (rank + 1) * query, 0);
  AddRows(weight, bias, "k", lo, hi, query);
  AddRows(weight, bias, "v", lo, hi, query + heads * kHeadRows);
  return {.group = "engine0", .rank = rank, .params = {weight, bias}};
}

LayoutFileSpec QkvFile(std::int32_t trainers, std::int32_t rollouts) {
  LayoutFileSpec file{.tensors = {{"q", "FP32", {16, 2}},
                                  {"k", "FP32", {4, 2}},
                                  {"v", "FP32", {4, 2}},
                                  {"q.bias", "FP32", {16}},
                                  {"k.bias", "FP32", {4}},
                                  {"v.bias", "FP32", {4}}},
                      .workers = {}};
  for (std::int32_t t = 0; t < trainers; ++t) file.workers.push_back(GroupedTrainer(t, trainers));
  for (std::int32_t r = 0; r < rollouts; ++r) file.workers.push_back(StackedRollout(r, rollouts));
  return file;
}

/// Every row holds its number among the 24 fused ones.
CheckpointFile FusedRowNumbers() {
  std::vector<float> q = CountUp(0, 8);
  const std::vector<float> second = CountUp(12, 8);
  q.insert(q.end(), second.begin(), second.end());
  const std::vector<float> k{8, 9, 20, 21};
  const std::vector<float> v{10, 11, 22, 23};
  CheckpointFile checkpoint;
  checkpoint.Add("q", "F32", {16, 2}, Repeat(q, 2));
  checkpoint.Add("k", "F32", {4, 2}, Repeat(k, 2));
  checkpoint.Add("v", "F32", {4, 2}, Repeat(v, 2));
  checkpoint.Add("q.bias", "F32", {16}, q);
  checkpoint.Add("k.bias", "F32", {4}, k);
  checkpoint.Add("v.bias", "F32", {4}, v);
  return checkpoint;
}

void CheckQkv(const Rehearsal& rehearsal, std::int32_t rank, const std::vector<float>& rows) {
  INFO("rank " << rank);
  CHECK(Floats(rehearsal, "engine0", rank, "qkv_proj.weight") == Repeat(rows, 2));
  CHECK(Floats(rehearsal, "engine0", rank, "qkv_proj.bias") == rows);
}

TEST_CASE("grouped Q, K and V rows of a trainer land stacked, weight and bias alike",
          "[field][case-2]") {
  const Rehearsal rehearsal = Pass(QkvFile(1, 2), {.checkpoint = FusedRowNumbers()});
  CheckQkv(rehearsal, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CheckQkv(rehearsal, 1, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23});
}

TEST_CASE("fused rows are right whatever the parallel sizes of the two sides", "[field][case-3]") {
  SECTION("two trainers, one rollout") {
    const Rehearsal rehearsal = Pass(QkvFile(2, 1), {.checkpoint = FusedRowNumbers()});
    CheckQkv(rehearsal, 0, {0,  1,  2,  3,  4, 5, 6,  7,  12, 13, 14, 15,
                            16, 17, 18, 19, 8, 9, 20, 21, 10, 11, 22, 23});
  }
  SECTION("two trainers, four rollouts that share key and value heads") {
    const Rehearsal rehearsal = Pass(QkvFile(2, 4), {.checkpoint = FusedRowNumbers()});
    CheckQkv(rehearsal, 0, {0, 1, 2, 3, 8, 9, 10, 11});
    CheckQkv(rehearsal, 1, {4, 5, 6, 7, 8, 9, 10, 11});
    CheckQkv(rehearsal, 2, {12, 13, 14, 15, 20, 21, 22, 23});
    CheckQkv(rehearsal, 3, {16, 17, 18, 19, 20, 21, 22, 23});
  }
}

/// `trainers` of equal shares of K [512, 2], and 8 rollouts of 128 rows: head r / 2.
LayoutFileSpec HeadsFile(const std::vector<std::pair<std::int64_t, std::int64_t>>& trainers) {
  LayoutFileSpec file{.tensors = {{"k", "FP32", {512, 2}}}, .workers = {}};
  for (const auto& [lo, hi] : trainers) {
    const auto rank = static_cast<std::int32_t>(file.workers.size());
    file.workers.push_back(
        {.group = "policy", .rank = rank, .params = {Whole("k", "k", {lo, 0}, {hi, 2})}});
  }
  for (std::int32_t r = 0; r < 8; ++r) {
    const std::int64_t lo = 128 * (r / 2);
    file.workers.push_back(
        {.group = "engine0", .rank = r, .params = {Whole("k", "k", {lo, 0}, {lo + 128, 2})}});
  }
  return file;
}

TEST_CASE("eight ranks over four key heads each get a whole head, two by two", "[field][case-4]") {
  const Rehearsal rehearsal = Pass(HeadsFile({{0, 128}, {128, 256}, {256, 384}, {384, 512}}));
  for (std::int32_t r = 0; r < 8; ++r) {
    INFO("rank " << r);
    const std::int64_t version = 3;
    CHECK(Floats(rehearsal, "engine0", r, "k") == Repeat(CountUp(128 * (r / 2) + version, 128), 2));
  }
}

TEST_CASE("heads that no trainer holds, or two hold unequally, are refused", "[field][case-4]") {
  const std::string uncovered = Refused(HeadsFile({{0, 128}, {128, 256}, {256, 448}}));
  INFO(uncovered);
  CHECK(Contains(uncovered,
                 "tensor k: box [448,0]..[512,2] is held by no trainer, wanted by engine0/6"));
  const std::string conflict = Refused(HeadsFile({{0, 256}, {128, 512}}));
  CHECK(Contains(conflict, "policy/0"));
  CHECK(Contains(conflict, "policy/1"));
}

TEST_CASE("a per-head norm follows its heads when there are more ranks than heads",
          "[field][case-5]") {
  LayoutFileSpec file{
      .tensors = {{"k_norm", "FP32", {32}}},
      .workers = {{.group = "policy", .params = {Whole("k_norm", "k_norm", {0}, {32})}}}};
  for (std::int32_t r = 0; r < 16; ++r) {
    const std::int64_t lo = 4 * (r / 2);
    file.workers.push_back(
        {.group = "engine0", .rank = r, .params = {Whole("k_norm", "k_norm", {lo}, {lo + 4})}});
  }
  CheckpointFile checkpoint;
  checkpoint.Add("k_norm", "F32", {32}, CountUp(0, 32));
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  for (std::int32_t r = 0; r < 16; ++r) {
    INFO("rank " << r);
    CHECK(Floats(rehearsal, "engine0", r, "k_norm") == CountUp(4 * (r / 2), 4));
  }
  CHECK(Floats(rehearsal, "engine0", 15, "k_norm") == std::vector<float>{28, 29, 30, 31});
}

TEST_CASE("rows interleaved per group are cut at groups, not in the middle", "[field][case-21]") {
  ParamSpec b{.name = "in_proj_b", .shape = {4, 2}};
  b.pieces = {{.tensor = "ba", .lo = {0, 0}, .hi = {2, 2}, .at = {0, 0}},
              {.tensor = "ba", .lo = {4, 0}, .hi = {6, 2}, .at = {2, 0}}};
  ParamSpec a{.name = "in_proj_a", .shape = {4, 2}};
  a.pieces = {{.tensor = "ba", .lo = {2, 0}, .hi = {4, 2}, .at = {0, 0}},
              {.tensor = "ba", .lo = {6, 0}, .hi = {8, 2}, .at = {2, 0}}};
  const LayoutFileSpec file{
      .tensors = {{"ba", "FP32", {8, 2}}},
      .workers = {
          {.group = "policy", .params = {b, a}},
          {.group = "engine0", .rank = 0, .params = {Whole("in_proj_ba", "ba", {0, 0}, {4, 2})}},
          {.group = "engine0", .rank = 1, .params = {Whole("in_proj_ba", "ba", {4, 0}, {8, 2})}}}};
  CheckpointFile checkpoint;
  checkpoint.Add("ba", "F32", {8, 2}, Repeat(CountUp(0, 8), 2));
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  CHECK(Floats(rehearsal, "engine0", 0, "in_proj_ba") == Repeat<float>({0, 1, 2, 3}, 2));
  CHECK(Floats(rehearsal, "engine0", 1, "in_proj_ba") == Repeat<float>({4, 5, 6, 7}, 2));
}

}  // namespace
}  // namespace wb::test
