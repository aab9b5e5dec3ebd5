#include "client/wbctl/contents/worker_memory.h"

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "client/wbctl/contents/npy.h"
#include "client/wbctl/contents/runs.h"
#include "client/wbctl/contents/same_storage.h"
#include "proto/convert.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"
#include "tests/support/temp_folder.h"
#include "tests/support/whole_file.h"

namespace wb {
namespace {

using test::ReadWholeFile;
using test::RunSeed;
using test::TempFolder;
using test::TestRng;

/// One worker's registration from a layout file of a trainer and a rollout.
struct Loaded {
  LoadedJob job;
  const Registration& of(Role role) const {
    for (const Registration& registration : job.registrations) {
      if (registration.layout.role == role) return registration;
    }
    throw std::logic_error("no such worker");
  }
};

Loaded Load(const std::string& tensors, const std::string& trainer, const std::string& rollout) {
  auto loaded = JobFromJson(
      R"({"job":"j","tensors":{)" + tensors +
      R"(},"workers":[{"role":"TRAINER","group":"policy","rank":0,"node":"a","params":[)" +
      trainer + R"(]},{"role":"ROLLOUT","group":"e","rank":0,"node":"b","params":[)" + rollout +
      "]}]}");
  if (const auto* refusals = std::get_if<Refusals>(&loaded)) FAIL(refusals->front().text);
  return {std::move(std::get<LoadedJob>(loaded))};
}

/// A worker's buffers in this process.
struct Memory {
  explicit Memory(const Registration& registration) {
    for (const Buffer& buffer : registration.layout.buffers) bytes.emplace_back(buffer.bytes);
  }
  std::vector<std::span<std::byte>> spans() { return {bytes.begin(), bytes.end()}; }
  std::vector<std::vector<std::byte>> bytes;
};

/// 2x3 of FP32 whose rows are 4 apart in memory: two bytes groups of padding.
Loaded Padded() {
  const std::string piece = R"("pieces":[{"tensor":"w","box":{"lo":[0,0],"hi":[2,3]},"at":[0,0]}])";
  return Load(R"("w":{"dtype":"FP32","shape":[2,3]})",
              R"({"name":"w","shape":[2,3],)" + piece + "}",
              R"({"name":"p","shape":[2,3],"strides":[4,1],)" + piece +
                  R"(},{"name":"mask","shape":[5],"dtype":"UINT8","local":true})");
}

TEST_CASE("what was written is found again, and every byte is compared", "[wbctl]") {
  const Loaded loaded = Padded();
  const Registration& rollout = loaded.of(Role::kRollout);
  Memory memory(rollout);
  WorkerMemory worker(rollout, memory.spans(), std::byte{0xA5});
  worker.Blank();
  worker.Write(FillContents(Fill::kHash, 1));
  const CheckResult check = worker.Check(FillContents(Fill::kHash, 1));
  REQUIRE(check.mismatches == 0);
  REQUIRE(check.element_bytes == 24);
  REQUIRE(check.hole_bytes == 4 + 5);  // between the rows, and the local param
}

TEST_CASE("an element of the version before is named with its param, index and bits", "[wbctl]") {
  const Loaded loaded = Padded();
  const Registration& rollout = loaded.of(Role::kRollout);
  Memory memory(rollout);
  WorkerMemory worker(rollout, memory.spans(), std::byte{0xA5});
  worker.Blank();
  worker.Write(FillContents(Fill::kIndex, 1));
  const float stale = 4.0F;  // index 4, version 0
  std::memcpy(memory.bytes[rollout.layout.pieces[0].buffer].data() + 5 * 4, &stale, 4);
  const CheckResult check = worker.Check(FillContents(Fill::kIndex, 1));
  REQUIRE(check.mismatches == 1);
  REQUIRE(check.first == std::vector<Mismatch>{{.param = "p",
                                                .tensor = "w",
                                                .index = {1, 1},
                                                .got = "0x40800000",
                                                .wanted = "0x40a00000"}});
}

TEST_CASE("a byte outside all pieces is named with its buffer", "[wbctl]") {
  const Loaded loaded = Padded();
  const Registration& rollout = loaded.of(Role::kRollout);
  Memory memory(rollout);
  WorkerMemory worker(rollout, memory.spans(), std::byte{0xA5});
  worker.Blank();
  worker.Write(FillContents(Fill::kRow, 1));
  memory.bytes[rollout.layout.pieces[0].buffer][13] = std::byte{0x99};
  const CheckResult check = worker.Check(FillContents(Fill::kRow, 1));
  REQUIRE(check.first ==
          std::vector<Mismatch>{
              {.param = "p", .tensor = "", .index = {13}, .got = "0x99", .wanted = "0xa5"}});
}

TEST_CASE("at most five mismatches are told, all are counted", "[wbctl]") {
  const Loaded loaded = Padded();
  const Registration& trainer = loaded.of(Role::kTrainer);
  Memory memory(trainer);
  WorkerMemory worker(trainer, memory.spans(), std::byte{0x99});
  worker.Blank();
  const CheckResult check = worker.Check(FillContents(Fill::kRow, 1));
  REQUIRE(check.mismatches == 6);
  REQUIRE(check.first.size() == kMaxMismatches);
}

TEST_CASE("a flipped bit is one mismatch", "[wbctl]") {
  const Loaded loaded = Padded();
  const Registration& trainer = loaded.of(Role::kTrainer);
  Memory memory(trainer);
  WorkerMemory worker(trainer, memory.spans(), std::byte{0x99});
  worker.Blank();
  worker.Write(FillContents(Fill::kHash, 1));
  REQUIRE(worker.FlipFirstElement());
  REQUIRE(worker.Check(FillContents(Fill::kHash, 1)).mismatches == 1);
}

TEST_CASE("tied tensors are named by the first of them, and share their bytes", "[wbctl]") {
  const std::string view = R"("shape":[4],"buffer":"flat","pieces":[{"tensor":)";
  const Loaded loaded = Load(
      R"("b":{"dtype":"BF16","shape":[4]},"a":{"dtype":"BF16","shape":[4]})",
      R"({"name":"x",)" + view + R"("a","box":{"lo":[0],"hi":[4]},"at":[0]}]},)" +
          R"({"name":"y",)" + view + R"("b","box":{"lo":[0],"hi":[4]},"at":[0]}]})",
      R"({"name":"a","shape":[4],"pieces":[{"tensor":"a","box":{"lo":[0],"hi":[4]},"at":[0]}]})");
  REQUIRE(SameStorageNames(loaded.job.job) == std::map<std::string, std::string>{{"b", "a"}});
  const Registration& trainer = loaded.of(Role::kTrainer);
  Memory memory(trainer);
  REQUIRE(WorkerMemory(trainer, memory.spans(), std::byte{0}).pieces_share_bytes());
  const Registration& rollout = loaded.of(Role::kRollout);
  Memory apart(rollout);
  REQUIRE_FALSE(WorkerMemory(rollout, apart.spans(), std::byte{0}).pieces_share_bytes());
}

/// A random box of a random tensor, in a param whose axes are permuted and whose strides have gaps.
struct RandomPiece {
  Tensor tensor;
  Piece piece;
};

RandomPiece Draw(std::mt19937_64& rng) {
  const auto upto = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(rng);
  };
  const auto ndim = static_cast<std::size_t>(1 + upto(3));
  Index shape;
  Index lo;
  Index hi;
  for (std::size_t d = 0; d < ndim; ++d) {
    shape.push_back(1 + upto(4));
    lo.push_back(upto(shape[d] - 1));
    hi.push_back(lo[d] + 1 + upto(shape[d] - lo[d] - 1));
  }
  std::vector<std::size_t> order(ndim);
  for (std::size_t d = 0; d < ndim; ++d) order[d] = d;
  if (upto(1) == 1) std::shuffle(order.begin(), order.end(), rng);
  Index strides(ndim, 1);
  std::int64_t step = 1 + upto(1);
  for (std::size_t i = ndim; i > 0; --i) {
    const std::size_t d = order[i - 1];
    strides[d] = step;
    step *= hi[d] - lo[d] + (upto(2) == 0 ? 1 : 0);
  }
  return {{.name = "t", .dtype = Dtype::kInt16, .shape = shape},
          {.tensor = TensorId(0),
           .box = *Box::Create(lo, hi),
           .offset_bytes = static_cast<std::uint64_t>(2 * upto(9)),
           .strides = strides,
           .at = {},
           .axes = {}}};
}

TEST_CASE("runs give every element of a box once, at its place", "[wbctl][property]") {
  const int round = GENERATE(range(0, 200));
  INFO("WB_TEST_SEED=" << RunSeed() << " round " << round);
  std::mt19937_64 rng = TestRng(round);
  const RandomPiece drawn = Draw(rng);
  const Box& box = drawn.piece.box;

  std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted;  // index in the tensor, byte
  Index at = box.lo();
  for (std::int64_t i = 0; i < box.elements(); ++i) {
    std::uint64_t linear = 0;
    std::uint64_t byte = drawn.piece.offset_bytes;
    for (std::size_t d = 0; d < at.size(); ++d) {
      linear = linear * static_cast<std::uint64_t>(drawn.tensor.shape[d]) +
               static_cast<std::uint64_t>(at[d]);
      byte += 2 * static_cast<std::uint64_t>((at[d] - box.lo()[d]) * drawn.piece.strides[d]);
    }
    wanted.emplace_back(linear, byte);
    for (std::size_t d = at.size(); d > 0; --d) {
      if (++at[d - 1] < box.hi()[d - 1]) break;
      at[d - 1] = box.lo()[d - 1];
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> got;
  ForEachRun(drawn.tensor, drawn.piece, [&](const ElementRun& run) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      got.emplace_back(run.begin + i, run.offset + i * run.stride);
    }
  });
  REQUIRE(got == wanted);
}

TEST_CASE("a whole contiguous tensor is one run, cut where it gets long", "[wbctl]") {
  const Tensor tensor{.name = "t", .dtype = Dtype::kBf16, .shape = {64, 256}};
  const Piece piece{.tensor = TensorId(0),
                    .box = *Box::Create({0, 0}, {64, 256}),
                    .offset_bytes = 32,
                    .strides = {256, 1},
                    .at = {},
                    .axes = {}};
  std::vector<ElementRun> runs;
  ForEachRun(tensor, piece, [&](const ElementRun& run) { runs.push_back(run); });
  REQUIRE(runs == std::vector<ElementRun>{{0, kMaxRunElements, 32, 2},
                                          {8192, kMaxRunElements, 32 + 2 * 8192, 2}});
}

TEST_CASE("a param is dumped in C order, holes included", "[wbctl]") {
  const TempFolder scratch;
  const Loaded loaded = Padded();
  const Registration& rollout = loaded.of(Role::kRollout);
  Memory memory(rollout);
  WorkerMemory worker(rollout, memory.spans(), std::byte{0xA5});
  worker.Blank();
  worker.Write(FillContents(Fill::kIndex, 0));
  for (const Param& param : rollout.layout.params) {
    REQUIRE(WriteNpy(scratch.File(NpyFileName(rollout.layout.name, param.name)), param,
                     worker.buffer(param.buffer))
                .ok());
  }
  const std::string dumped = ReadWholeFile(scratch.File("e-0-p.npy"));
  REQUIRE(dumped.size() == 128 + 24);
  REQUIRE(dumped.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  REQUIRE_THAT(dumped, Catch::Contains("'descr': '<f4', 'fortran_order': False, 'shape': (2, 3"));
  std::array<float, 6> values{};
  std::memcpy(values.data(), dumped.data() + 128, 24);
  REQUIRE(values == std::array<float, 6>{0, 1, 2, 3, 4, 5});
  REQUIRE(ReadWholeFile(scratch.File("e-0-mask.npy")).substr(128) == std::string(5, '\xA5'));
}

TEST_CASE("a transposed param is dumped as it lies, not as the tensor", "[wbctl]") {
  const TempFolder scratch;
  const Param param{.name = "t", .dtype = Dtype::kUint8, .shape = {2, 3}, .strides = {1, 2}};
  const std::array<std::byte, 6> memory{std::byte{'a'}, std::byte{'d'}, std::byte{'b'},
                                        std::byte{'e'}, std::byte{'c'}, std::byte{'f'}};
  REQUIRE(WriteNpy(scratch.File("t.npy"), param, memory).ok());
  REQUIRE(ReadWholeFile(scratch.File("t.npy")).substr(128) == "abcdef");
}

TEST_CASE("a param without elements is dumped as its header", "[wbctl]") {
  const TempFolder scratch;
  const Param param{.name = "t", .dtype = Dtype::kBf16, .shape = {0, 3}, .strides = {3, 1}};
  REQUIRE(WriteNpy(scratch.File("t.npy"), param, {}).ok());
  REQUIRE(ReadWholeFile(scratch.File("t.npy")).size() == 128);
}

TEST_CASE("names of dumped files escape slash and percent", "[wbctl]") {
  REQUIRE(NpyFileName({"engine0", 3}, "a/b%c.weight") == "engine0-3-a%2Fb%25c.weight.npy");
}

TEST_CASE("a dump that cannot be written says where", "[wbctl]") {
  const Param param{.name = "t", .dtype = Dtype::kUint8, .shape = {1}, .strides = {1}};
  const std::array<std::byte, 1> memory{};
  REQUIRE_THAT(std::string(WriteNpy("/nonexistent/t.npy", param, memory).message()),
               Catch::Contains("/nonexistent/t.npy"));
}

}  // namespace
}  // namespace wb
