// Cases 28, 35, 46 and 55: bits that have to arrive as they are.
#include "tests/field/rehearse_fixture.h"

namespace wb::test {
namespace {

TEST_CASE("two halves of a fused param from two trainers both arrive, NaN bits as they are",
          "[field][case-28]") {
  ParamSpec fused{.name = "fused_qkv_a", .shape = {5, 4}};
  fused.pieces = {{.tensor = "q_a", .lo = {0, 0}, .hi = {3, 4}, .at = {0, 0}},
                  {.tensor = "kv_a", .lo = {0, 0}, .hi = {2, 4}, .at = {3, 0}}};
  LayoutFileSpec file{
      .tensors = {{"q_a", "FP32", {3, 4}}, {"kv_a", "FP32", {2, 4}}, {"nan", "BF16", {9}}},
      .workers = {{.group = "policy",
                   .rank = 0,
                   .params = {Whole("q_a", "q_a", {0, 0}, {3, 4}), Whole("nan", "nan", {0}, {9})}},
                  {.group = "policy", .rank = 1, .params = {Whole("kv_a", "kv_a", {0, 0}, {2, 4})}},
                  {.group = "engine0", .params = {fused, Whole("nan", "nan", {0}, {9})}}}};

  SECTION("both are there") {
    const std::vector<std::uint16_t> nans(9, 0x7FC1);
    CheckpointFile checkpoint;
    checkpoint.Add("q_a", "F32", {3, 4}, std::vector<float>(12, 1));
    checkpoint.Add("kv_a", "F32", {2, 4}, std::vector<float>(8, 2));
    checkpoint.Add("nan", "BF16", {9}, nans);
    const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
    CHECK(Floats(rehearsal, "engine0", 0, "fused_qkv_a") == Repeat<float>({1, 1, 1, 2, 2}, 4));
    CHECK(rehearsal.Dumped("engine0", 0, "nan").As<std::uint16_t>() == nans);
  }
  SECTION("without the second half nothing moves") {
    file.workers[1].params = {};
    CHECK(Contains(Refused(file), "kv_a"));
  }
}

TEST_CASE("the rollout process itself reads each new version in its memory", "[field][case-35]") {
  const LayoutFileSpec file{
      .tensors = {{"w", "FP32", {1, 64}}},
      .workers = {{.group = "policy", .params = {Whole("w", "w", {0, 0}, {1, 64})}},
                  {.group = "engine0", .params = {Whole("w", "w", {0, 0}, {1, 64})}}}};
  const Rehearsal first = Pass(file, {.versions = 1});
  CHECK(Floats(first, "engine0", 0, "w") == std::vector<float>(64, 1));
  const Rehearsal second = Pass(file, {.versions = 2});
  CHECK(Floats(second, "engine0", 0, "w") == std::vector<float>(64, 2));
}

TEST_CASE("an FP32 bias arrives bit for bit, and in BF16 is refused without a rule",
          "[field][case-46]") {
  LayoutFileSpec file{
      .tensors = {{"bias", "FP32", {3}}},
      .workers = {{.group = "policy", .params = {Whole("bias", "bias", {0}, {3})}},
                  {.group = "engine0", .params = {Whole("bias", "bias", {0}, {3})}}}};
  SECTION("FP32 to FP32") {
    const std::vector<std::uint32_t> bits{0x40E000D2, 0x40DA8F5C, 0x40DAE148};
    CheckpointFile checkpoint;
    checkpoint.Add("bias", "F32", {3}, bits);
    const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
    CHECK(rehearsal.Dumped("engine0", 0, "bias").As<std::uint32_t>() == bits);
  }
  SECTION("FP32 to BF16") {
    file.workers[1].params[0].dtype = "BF16";
    const std::string reasons = Refused(file);
    CHECK(Contains(reasons, "bias"));
    CHECK(Contains(reasons, "FP32"));
    CHECK(Contains(reasons, "BF16"));
  }
}

TEST_CASE("dtypes packed back to back at odd offsets are exact", "[field][case-55]") {
  const auto packed = [](const std::string& tensor, std::int64_t count, std::int64_t offset) {
    ParamSpec param = Whole(tensor, tensor, {0}, {count});
    param.buffer = "bucket";
    param.offset_bytes = offset;
    return param;
  };
  const LayoutFileSpec file{
      .tensors = {{"half", "FP16", {3}},
                  {"single", "FP32", {1}},
                  {"byte", "UINT8", {5}},
                  {"long", "INT64", {2}}},
      .workers = {{.group = "policy",
                   .params = {packed("half", 3, 0), packed("single", 1, 6), packed("byte", 5, 10),
                              packed("long", 2, 15)}},
                  {.group = "engine0",
                   .params = {packed("byte", 5, 0), packed("long", 2, 5), packed("half", 3, 21),
                              packed("single", 1, 27)}}}};
  const std::vector<std::uint16_t> half{0x3C00, 0x4000, 0xB800};
  const std::vector<std::uint8_t> byte{1, 2, 3, 4, 5};
  const std::vector<std::int64_t> longs{-1, (std::int64_t{1} << 53) + 1};
  CheckpointFile checkpoint;
  checkpoint.Add("half", "F16", {3}, half);
  checkpoint.Add("single", "F32", {1}, std::vector<float>{1.5});
  checkpoint.Add("byte", "U8", {5}, byte);
  checkpoint.Add("long", "I64", {2}, longs);
  const Rehearsal rehearsal = Pass(file, {.checkpoint = checkpoint});
  CHECK(rehearsal.Dumped("engine0", 0, "half").As<std::uint16_t>() == half);
  CHECK(Floats(rehearsal, "engine0", 0, "single") == std::vector<float>{1.5});
  CHECK(rehearsal.Dumped("engine0", 0, "byte").As<std::uint8_t>() == byte);
  CHECK(rehearsal.Dumped("engine0", 0, "long").As<std::int64_t>() == longs);
}

}  // namespace
}  // namespace wb::test
