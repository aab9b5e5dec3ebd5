#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "proto/convert.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

PlanPart Part() {
  PlanPart part;
  part.job = "job";
  part.group = "engine";
  part.fingerprint = Fingerprint(0xFEDCBA9876543210ULL);
  part.workers = {{{"engine", 0}, "n1"}, {{"policy", 0}, "n0"}, {{"policy", 1}, "n0"}};
  part.tensors = {{"k", Dtype::kBf16, {4, 2}, false}, {"q", Dtype::kFp32, {16, 2}, true}};
  part.ties = {{"head", TensorId(1)}};
  part.moves = {{WorkerIndex(1), WorkerIndex(0), TensorId(0), *Box::Create({0, 0}, {4, 2}), 16},
                {WorkerIndex(2), WorkerIndex(0), TensorId(1), *Box::Create({8, 0}, {16, 2}), 64}};
  return part;
}

// The text after "plan." of the refusal of a changed plan.
std::string Fault(const std::function<void(v1::Plan&)>& change) {
  v1::Plan wire = ToProto(Part());
  change(wire);
  const absl::StatusOr<PlanPart> part = PlanPartFromProto(wire);
  REQUIRE(part.status().code() == absl::StatusCode::kInvalidArgument);
  const std::string text(part.status().message());
  REQUIRE(text.substr(0, 5) == "plan.");
  return text.substr(5);
}

TEST_CASE("A plan part survives the wire", "[proto]") {
  CHECK(*PlanPartFromProto(ToProto(Part())) == Part());
  PlanPart empty;
  empty.job = "job";
  empty.group = "engine";
  CHECK(*PlanPartFromProto(ToProto(empty)) == empty);
}

TEST_CASE("A strided slice is one move on the wire, and 15000 segments are 64 bytes each at most",
          "[proto][field][case-142]") {
  constexpr std::int64_t kSegments = 15'000;
  constexpr std::int64_t kColumns = 33'792;  // 66 KB a row
  constexpr std::int64_t kCut = 2'048;
  PlanPart part = Part();
  part.tensors = {{"w", Dtype::kBf16, {kSegments, kColumns}, false}};
  part.ties.clear();
  const auto move = [](std::int64_t begin, std::int64_t end) {
    return Move{WorkerIndex(1), WorkerIndex(0), TensorId(0),
                *Box::Create({begin, kCut}, {end, 2 * kCut}),
                static_cast<std::uint64_t>((end - begin) * kCut * 2)};
  };
  part.moves = {move(0, kSegments)};
  CHECK(ToProto(part).ByteSizeLong() < 1'000);
  part.moves.clear();
  for (std::int64_t row = 0; row < kSegments; ++row) part.moves.push_back(move(row, row + 1));
  CHECK(ToProto(part).ByteSizeLong() <= 64 * kSegments);
}

TEST_CASE("Indices of a plan beyond their tables are refused by field", "[proto]") {
  constexpr std::uint32_t kHuge = std::numeric_limits<std::uint32_t>::max();
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_moves(1)->set_src(3); }) ==
        "moves[1].src is 3, want less than 3");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_moves(0)->set_dst(kHuge); }) ==
        "moves[0].dst is 4294967295, want less than 3");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_moves(0)->set_tensor(2); }) ==
        "moves[0].tensor is 2, want less than 2");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_ties(0)->set_target(2); }) ==
        "ties[0].target is 2, want less than 2");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_moves(0)->set_src(0); }) ==
        "moves[0] goes from engine/0 to itself");
}

TEST_CASE("Boxes of a plan must lie in their tensors", "[proto]") {
  const auto with_box = [](const std::vector<std::int64_t>& lo,
                           const std::vector<std::int64_t>& hi) {
    return Fault([&](v1::Plan& wire) {
      v1::Box& box = *wire.mutable_moves(0)->mutable_box();
      box.Clear();
      box.mutable_lo()->Add(lo.begin(), lo.end());
      box.mutable_hi()->Add(hi.begin(), hi.end());
    });
  };
  CHECK(with_box({0, 0}, {5, 2}) ==
        "moves[0].box [0,0]..[5,2] reaches beyond extent 4 of dimension 0 of tensor k");
  CHECK(with_box({0}, {4}) == "moves[0].box [0]..[4] has 1 dimensions, want 2 of tensor k");
  CHECK(with_box({1, 0}, {1, 2}) ==
        "moves[0].box: box: dimension 0 has lo 1 and hi 1, want 0 <= lo < hi");
  CHECK(with_box({-1, 0}, {1, 2}) ==
        "moves[0].box: box: dimension 0 has lo -1 and hi 1, want 0 <= lo < hi");
  CHECK(with_box({}, {}).find("moves[0].box: box: lo has 0 dimensions") == 0);
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK(with_box({0, 0}, {kHuge, kHuge}).find("does not fit 64 bits") != std::string::npos);
}

TEST_CASE("Names of a plan are checked, and must differ", "[proto]") {
  CHECK(Fault([](v1::Plan& wire) { wire.clear_job(); }) == "job \"\" is empty, want a name");
  CHECK(Fault([](v1::Plan& wire) { wire.clear_group(); }) == "group \"\" is empty, want a name");
  CHECK(Fault([](v1::Plan& wire) {
          wire.mutable_workers(1)->set_group("a b");
        }).find("workers[1].group a b has a character at byte 1") == 0);
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_workers(1)->clear_node(); }) ==
        "workers[1].node \"\" is empty, want a name");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_workers(1)->set_rank(-1); }) ==
        "workers[1].rank is -1, want >= 0");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_workers(2)->set_rank(0); }) ==
        "workers[2] is policy/0 again, want each worker once");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_tensors(1)->set_name("k"); }) ==
        "tensors[1] is k again, want each tensor once");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_ties(0)->clear_alias(); }) ==
        "ties[0].alias \"\" is empty, want a name");
  CHECK(Fault([](v1::Plan& wire) { *wire.add_ties() = wire.ties(0); }) ==
        "ties[1].alias is head again, want each alias once");
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_ties(0)->set_alias("q"); }) ==
        "ties[0] ties q to itself");
}

TEST_CASE("Tensors of a plan are checked like those of a layout", "[proto]") {
  CHECK(Fault([](v1::Plan& wire) { wire.mutable_tensors(0)->mutable_tensor()->add_shape(-1); }) ==
        "tensors[0]: tensor k: shape[2] is -1, want >= 0");
  CHECK(Fault([](v1::Plan& wire) {
          wire.mutable_tensors(0)->clear_tensor();
        }).find("tensors[0]: tensor k: dtype is missing") == 0);
}

TEST_CASE("More workers than the limit are refused", "[proto]") {
  CHECK(Fault([](v1::Plan& wire) {
          for (std::size_t i = 0; i < kMaxWorkers; ++i) wire.add_workers();
        }) == "workers has 65539 entries, want at most 65536");
}

}  // namespace
}  // namespace wb
