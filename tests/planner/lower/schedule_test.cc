// How one stream looks from one worker's memory.
#include "planner/lower/schedule.h"

#include <string>
#include <vector>

#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"

namespace wb {
namespace {

using test::JobBuilder;
using test::WorkerNamed;

// One trainer, one rollout: the whole plan is one stream.
LocalStream Lower(const Job& job, StreamEnd end, std::uint64_t chunk_bytes = kDefaultChunkBytes) {
  const Plan plan = test::MustSolve(job);
  const WorkerIndex worker =
      end == StreamEnd::kSource ? AllMoves(plan).front().src : AllMoves(plan).front().dst;
  absl::StatusOr<LocalStream> stream =
      LowerStream(AllMoves(plan), job.tensors, job.layout(worker), end, chunk_bytes);
  INFO(stream.status());
  REQUIRE(stream.ok());
  return *std::move(stream);
}

ChunkPart Run(std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) {
  return {buffer, ByteBlock{offset, bytes, {}}, 0, bytes};
}

TEST_CASE("gate and up of an expert that lie side by side are one run", "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("e0.gate", Dtype::kBf16, {3, 4})
                      .AddTensor("e0.up", Dtype::kBf16, {3, 4})
                      .Trainer(0, "n0")
                      .AddParam({.name = "fc1",
                                 .shape = {6, 4},
                                 .pieces = {{"e0.gate", {0, 0}, {3, 4}, {0, 0}},
                                            {"e0.up", {0, 0}, {3, 4}, {3, 0}}}})
                      .Rollout("e", 0, "n1")
                      .AddParam({.name = "w13",
                                 .shape = {2, 6, 4},
                                 .pieces = {{"e0.gate", {0, 0}, {3, 4}, {1, 0, 0}},
                                            {"e0.up", {0, 0}, {3, 4}, {1, 3, 0}}}})
                      .Build();
  const LocalStream source = Lower(job, StreamEnd::kSource);
  REQUIRE(source.bytes == 48);
  REQUIRE(source.chunks.size() == 1);
  REQUIRE(source.chunks[0].parts == std::vector<ChunkPart>{Run(0, 0, 48)});
  REQUIRE(source.chunks[0].contiguous());
  const LocalStream destination = Lower(job, StreamEnd::kDestination);
  REQUIRE(destination.chunks[0].parts == std::vector<ChunkPart>{Run(0, 48, 48)});
}

TEST_CASE("a cut of columns is one strided block, cut by ranges", "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp32, {100, 8})
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0}, {100, 8})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0, 2}, {100, 4})
                      .Build();
  const ByteBlock columns{8, 8, {{100, 32}}};
  const LocalStream source = Lower(job, StreamEnd::kSource, 500);
  REQUIRE(source.chunks.size() == 2);
  REQUIRE(source.chunks[0].parts == std::vector<ChunkPart>{{0, columns, 0, 500}});
  REQUIRE(source.chunks[1].parts == std::vector<ChunkPart>{{0, columns, 500, 800}});
  const LocalStream destination = Lower(job, StreamEnd::kDestination, 500);
  REQUIRE(destination.chunks[1].parts == std::vector<ChunkPart>{Run(0, 500, 300)});
}

TEST_CASE("a transposed piece is single elements with strides", "[planner][lower]") {
  const Job job =
      JobBuilder()
          .AddTensor("w", Dtype::kFp32, {2, 3})
          .Trainer(0, "n0")
          .AddParam(
              {.name = "w_t", .shape = {3, 2}, .pieces = {{"w", {0, 0}, {2, 3}, {0, 0}, {1, 0}}}})
          .Rollout("e", 0, "n1")
          .Holds("w", {0, 0}, {2, 3})
          .Build();
  const LocalStream source = Lower(job, StreamEnd::kSource);
  // Tensor order: rows of w are columns of w_t.
  REQUIRE(source.chunks[0].parts ==
          std::vector<ChunkPart>{{0, ByteBlock{0, 4, {{2, 4}, {3, 8}}}, 0, 24}});
}

TEST_CASE("a range inside one run of a strided block is that run", "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kInt8, {2, 64})
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0}, {2, 64})
                      .Rollout("e", 0, "n1")
                      .AddParam({.name = "w",
                                 .shape = {2, 64},
                                 .pieces = {{"w", {0, 0}, {2, 64}, {0, 0}}},
                                 .strides = {100, 1}})
                      .Build();
  const LocalStream destination = Lower(job, StreamEnd::kDestination, 32);
  REQUIRE(destination.chunks.size() == 4);
  REQUIRE(destination.chunks[3].parts == std::vector<ChunkPart>{Run(0, 132, 32)});
  REQUIRE(destination.chunks[3].contiguous());
}

TEST_CASE("dimensions of extent 1 and those without a gap between vanish", "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kFp64, {1, 4, 1, 5, 6})
                      .Trainer(0, "n0")
                      .Holds("w", {0, 0, 0, 0, 0}, {1, 4, 1, 5, 6})
                      .Rollout("e", 0, "n1")
                      .AddParam({.name = "w",
                                 .shape = {1, 4, 1, 5, 6},
                                 .pieces = {{"w", {0, 0, 0, 0, 0}, {1, 4, 1, 5, 6}}},
                                 .strides = {7, 80, 3, 16, 2}})
                      .Build();
  REQUIRE(Lower(job, StreamEnd::kSource).chunks[0].parts == std::vector<ChunkPart>{Run(0, 0, 960)});
  // 4 x 5 rows at a distance of 16 elements merge; 6 elements at a distance of 2 do not.
  REQUIRE(Lower(job, StreamEnd::kDestination).chunks[0].parts ==
          std::vector<ChunkPart>{{0, ByteBlock{0, 8, {{20, 128}, {6, 16}}}, 0, 960}});
}

TEST_CASE("a tensor in two params of a destination lands in both", "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("a", Dtype::kInt8, {4})
                      .AddTensor("embed", Dtype::kInt8, {16})
                      .Trainer(0, "n0")
                      .Holds("a", {0}, {4})
                      .Holds("embed", {0}, {16})
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0}, {4})
                      .Holds("embed", {0}, {16})
                      .Holds("embed", {0}, {16})
                      .Build();
  const LocalStream stream = Lower(job, StreamEnd::kDestination, 12);
  REQUIRE(stream.chunks.size() == 3);
  REQUIRE(stream.chunks[0].bytes == 4);  // "embed" starts a chunk of its own
  REQUIRE(stream.chunks[0].extra.empty());
  REQUIRE(stream.chunks[1].parts == std::vector<ChunkPart>{Run(1, 0, 12)});
  REQUIRE(stream.chunks[1].extra == std::vector<LocalChunk::Extra>{{0, Run(2, 0, 12)}});
  REQUIRE_FALSE(stream.chunks[1].contiguous());
  REQUIRE(Lower(job, StreamEnd::kSource, 12).chunks[1].extra.empty());
}

TEST_CASE("two params that are the same memory are written once", "[planner][lower]") {
  const Job job =
      JobBuilder()
          .AddTensor("embed", Dtype::kInt8, {16})
          .Trainer(0, "n0")
          .Holds("embed", {0}, {16})
          .Rollout("e", 0, "n1")
          .AddParam(
              {.name = "x", .shape = {16}, .pieces = {{"embed", {0}, {16}}}, .buffer = "flat"})
          .AddParam(
              {.name = "y", .shape = {16}, .pieces = {{"embed", {0}, {16}}}, .buffer = "flat"})
          .Build();
  REQUIRE(Lower(job, StreamEnd::kDestination).chunks[0].extra.empty());
}

TEST_CASE("a large contiguous move is one run a chunk, however it follows small ones",
          "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("a", Dtype::kInt8, {5})
                      .AddTensor("b", Dtype::kInt8, {35})
                      .Trainer(0, "n0")
                      .Holds("a", {0}, {5})
                      .Holds("b", {0}, {35})
                      .Rollout("e", 0, "n1")
                      .Holds("a", {0}, {5})
                      .Holds("b", {0}, {35})
                      .Build();
  const LocalStream stream = Lower(job, StreamEnd::kSource, 10);
  REQUIRE(stream.chunks.size() == 5);
  for (const LocalChunk& chunk : stream.chunks) REQUIRE(chunk.contiguous());
}

TEST_CASE("a box that the layout does not hold is named with its tensor", "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kInt8, {16})
                      .Trainer(0, "n0")
                      .Holds("w", {0}, {16})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0}, {16})
                      .Build();
  std::vector<Move> moves = AllMoves(test::MustSolve(job));
  Layout smaller = job.layout(WorkerNamed(job, "e/0"));
  smaller.pieces.Edit()[0].box = *Box::Create({0}, {8});
  const absl::Status status =
      LowerStream(moves, job.tensors, smaller, StreamEnd::kDestination, 1024).status();
  REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(std::string(status.message()) ==
          "tensor w: worker e/0 has no piece that holds all of box [0]..[16] of the plan");

  moves[0].tensor = TensorId(7);
  REQUIRE(LowerStream(moves, job.tensors, smaller, StreamEnd::kDestination, 1024).status().code() ==
          absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("a box of other dimensions than the tensor's is refused", "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kInt8, {16})
                      .Trainer(0, "n0")
                      .Holds("w", {0}, {16})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0}, {16})
                      .Build();
  std::vector<Move> moves = AllMoves(test::MustSolve(job));
  moves[0].box = *Box::Create({0, 0}, {2, 2});
  REQUIRE(LowerStream(moves, job.tensors, job.layouts[0], StreamEnd::kDestination, 64)
              .status()
              .code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("moves of several pairs are not one stream, and no moves are an empty one",
          "[planner][lower]") {
  const Job job = JobBuilder()
                      .AddTensor("w", Dtype::kInt8, {16})
                      .Trainer(0, "n0")
                      .Holds("w", {0}, {8})
                      .Trainer(1, "n0")
                      .Holds("w", {8}, {16})
                      .Rollout("e", 0, "n1")
                      .Holds("w", {0}, {16})
                      .Build();
  const Plan plan = test::MustSolve(job);
  REQUIRE(LowerStream(AllMoves(plan), job.tensors, job.layouts[0], StreamEnd::kDestination, 64)
              .status()
              .code() == absl::StatusCode::kInvalidArgument);
  const absl::StatusOr<LocalStream> none =
      LowerStream({}, job.tensors, job.layouts[0], StreamEnd::kDestination, 64);
  REQUIRE(none.ok());
  REQUIRE(none->chunks.empty());
}

}  // namespace
}  // namespace wb
