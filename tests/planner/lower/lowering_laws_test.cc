// Plans and schedules together, against a walk over single elements: every destination byte that a
// piece covers gets its value, every other byte stays as it was.
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "planner/lower/schedule.h"
#include "tests/planner/solve/solve_support.h"
#include "tests/support/catch.h"
#include "tests/support/job_builder.h"
#include "tests/support/layout_gen.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using Bytes = std::vector<unsigned char>;
using Memory = std::vector<Bytes>;  // per buffer of a layout

constexpr unsigned char kHole = 0xA5;

Memory Allocate(const Layout& layout) {
  Memory memory;
  for (const Buffer& buffer : layout.buffers) memory.emplace_back(buffer.bytes, kHole);
  return memory;
}

// Writes into every element of the layout's pieces the value that its tensor has there.
void FillElements(const Job& job, const Layout& layout, Memory& memory) {
  for (const Piece& piece : layout.pieces) {
    const Tensor& tensor = job.tensor(piece.tensor);
    const auto size = static_cast<std::size_t>(DtypeBytes(tensor.dtype));
    test::ForEachIndex(piece.box, [&](const Index& at) {
      std::uint64_t linear = 0;
      std::uint64_t offset = piece.offset_bytes;
      for (std::size_t d = 0; d < at.size(); ++d) {
        linear = linear * static_cast<std::uint64_t>(tensor.shape[d]) +
                 static_cast<std::uint64_t>(at[d]);
        offset += static_cast<std::uint64_t>((at[d] - piece.box.lo()[d]) * piece.strides[d]) * size;
      }
      const std::uint64_t value =
          XXH3_64bits_withSeed(tensor.name.data(), tensor.name.size(), linear);
      std::memcpy(memory[piece.buffer].data() + offset, &value, size);
    });
  }
}

// The buffer offset of byte `packed` of the block's packed order.
std::uint64_t OffsetOf(const ByteBlock& block, std::uint64_t packed) {
  std::uint64_t offset = block.offset + packed % block.run_bytes;
  std::uint64_t run = packed / block.run_bytes;
  for (std::size_t d = block.dims.size(); d-- > 0;) {
    offset += run % block.dims[d].extent * block.dims[d].stride_bytes;
    run /= block.dims[d].extent;
  }
  return offset;
}

Bytes Gather(const LocalChunk& chunk, const Memory& memory) {
  Bytes packed;
  for (const ChunkPart& part : chunk.parts) {
    for (std::uint64_t at = part.begin; at < part.end; ++at) {
      packed.push_back(memory[part.buffer].at(OffsetOf(part.block, at)));
    }
  }
  return packed;
}

void ScatterPart(const ChunkPart& part, const Bytes& packed, std::uint64_t from, Memory& memory) {
  for (std::uint64_t at = part.begin; at < part.end; ++at) {
    memory[part.buffer].at(OffsetOf(part.block, at)) = packed.at(from + at - part.begin);
  }
}

void Scatter(const LocalChunk& chunk, const Bytes& packed, Memory& memory) {
  std::uint64_t from = 0;
  for (const ChunkPart& part : chunk.parts) {
    ScatterPart(part, packed, from, memory);
    from += part.bytes();
  }
  for (const LocalChunk::Extra& extra : chunk.extra) {
    ScatterPart(extra.part, packed, extra.at, memory);
  }
}

LocalStream MustLower(const Job& job,
                      const std::vector<Move>& moves,
                      StreamEnd end,
                      std::uint64_t chunk_bytes) {
  const WorkerIndex worker = end == StreamEnd::kSource ? moves[0].src : moves[0].dst;
  absl::StatusOr<LocalStream> stream =
      LowerStream(moves, job.tensors, job.layout(worker), end, chunk_bytes);
  INFO(stream.status());
  REQUIRE(stream.ok());
  return *std::move(stream);
}

// Runs one stream and checks that both ends see the same chunks.
void RunStream(const Job& job,
               const std::vector<Move>& moves,
               std::uint64_t chunk_bytes,
               std::vector<Memory>& memory) {
  const LocalStream out = MustLower(job, moves, StreamEnd::kSource, chunk_bytes);
  const LocalStream in = MustLower(job, moves, StreamEnd::kDestination, chunk_bytes);
  REQUIRE(out.bytes == in.bytes);
  REQUIRE(out.chunks.size() == in.chunks.size());
  for (std::size_t c = 0; c < out.chunks.size(); ++c) {
    const Bytes packed = Gather(out.chunks[c], memory[out.src.value()]);
    REQUIRE(packed.size() == out.chunks[c].bytes);
    REQUIRE(packed.size() == in.chunks[c].bytes);
    REQUIRE(packed.size() <= chunk_bytes);
    Scatter(in.chunks[c], packed, memory[in.dst.value()]);
  }
}

void MoveAndCompare(const Job& job, std::uint64_t chunk_bytes) {
  std::vector<Memory> memory;
  for (const Layout& layout : job.layouts) memory.push_back(Allocate(layout));
  for (std::size_t w = 0; w < job.layouts.size(); ++w) {
    if (job.layouts[w].role == Role::kTrainer) FillElements(job, job.layouts[w], memory[w]);
  }
  const std::vector<Memory> before = memory;

  std::map<std::pair<WorkerIndex, WorkerIndex>, std::vector<Move>> streams;
  for (const Move& move : test::MustSolve(job).moves) {
    streams[{move.src, move.dst}].push_back(move);
  }
  for (const auto& [pair, moves] : streams) RunStream(job, moves, chunk_bytes, memory);

  for (std::size_t w = 0; w < job.layouts.size(); ++w) {
    INFO("worker " << job.layouts[w].name.ToString());
    if (job.layouts[w].role == Role::kTrainer) {
      REQUIRE(memory[w] == before[w]);
      continue;
    }
    Memory expected = Allocate(job.layouts[w]);
    FillElements(job, job.layouts[w], expected);
    REQUIRE(memory[w] == expected);
  }
}

TEST_CASE("plan and schedule bring every element to every place, and touch nothing else",
          "[planner][lower][property]") {
  const std::uint64_t chunk_bytes = GENERATE(as<std::uint64_t>(), 7, 64, 1000, 10923, 1 << 20);
  const int round = GENERATE(range(0, 60));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round << " chunk " << chunk_bytes);
  std::mt19937_64 rng = test::TestRng(round);
  MoveAndCompare(test::RandomJob(rng), chunk_bytes);
}

TEST_CASE("tensors of all element sizes move", "[planner][lower]") {
  test::JobBuilder builder;
  const auto each_dtype = [&](auto&& add) {
    for (int d = 0; d <= static_cast<int>(Dtype::kBool); ++d) add(static_cast<Dtype>(d));
  };
  each_dtype([&](Dtype dtype) { builder.AddTensor(std::string(DtypeName(dtype)), dtype, {6, 5}); });
  for (int r = 0; r < 2; ++r) {
    builder.Trainer(r, "n0");
    each_dtype([&](Dtype dtype) {
      builder.Holds(std::string(DtypeName(dtype)), {3 * r, 0}, {3 * r + 3, 5});
    });
  }
  for (int r = 0; r < 2; ++r) {
    builder.Rollout("e", r, "n1");
    each_dtype([&](Dtype dtype) {
      builder.Holds(std::string(DtypeName(dtype)), {0, 2 * r}, {6, r == 0 ? 2 : 5});
    });
  }
  const std::uint64_t chunk_bytes = GENERATE(as<std::uint64_t>(), 7, 64, 1 << 20);
  MoveAndCompare(builder.Build(), chunk_bytes);
}

TEST_CASE("tensors of mixed dtypes back to back move whole at any chunk size",
          "[planner][lower][field][case-55]") {
  test::JobBuilder builder;
  builder.AddTensor("a", Dtype::kFp16, {3})
      .AddTensor("b", Dtype::kFp32, {1})
      .AddTensor("c", Dtype::kUint8, {5})
      .AddTensor("d", Dtype::kInt64, {2});
  builder.Trainer(0, "n0");
  const auto flat = [&] {  // offsets 0, 6, 10, 15: nothing is aligned
    builder.AddParam({.name = "a", .shape = {3}, .pieces = {{"a", {0}, {3}}}, .buffer = "flat"})
        .AddParam({.name = "b",
                   .shape = {1},
                   .pieces = {{"b", {0}, {1}}},
                   .buffer = "flat",
                   .offset_bytes = 6})
        .AddParam({.name = "c",
                   .shape = {5},
                   .pieces = {{"c", {0}, {5}}},
                   .buffer = "flat",
                   .offset_bytes = 10})
        .AddParam({.name = "d",
                   .shape = {2},
                   .pieces = {{"d", {0}, {2}}},
                   .buffer = "flat",
                   .offset_bytes = 15});
  };
  flat();
  builder.Rollout("e", 0, "n1");
  flat();
  builder.Rollout("e", 1, "n1");
  for (const char* name : {"d", "c", "b", "a"}) {
    const std::int64_t extent = name[0] == 'a' ? 3 : name[0] == 'b' ? 1 : name[0] == 'c' ? 5 : 2;
    builder.Holds(name, {0}, {extent});
  }
  const std::uint64_t chunk_bytes = GENERATE(as<std::uint64_t>(), 7, 64, 1000, 10923);
  MoveAndCompare(builder.Build(), chunk_bytes);
}

}  // namespace
}  // namespace wb
