#include "tests/support/byte_walk.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include <xxhash.h>

#include "planner/lower/schedule.h"
#include "planner/model/plan_moves.h"

namespace wb::test {
namespace {

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

// The job's layout of a worker, with tied tensors' pieces under the name they travel as.
Layout Bound(const Job& job, const Plan& plan, WorkerIndex worker) {
  Layout layout = job.layout(worker);
  std::vector<Piece>& pieces = layout.pieces.Edit();
  for (Piece& piece : pieces) {
    for (const Tie& tie : plan.ties) {
      if (piece.tensor == tie.alias) piece.tensor = tie.target;
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.tensor, a.box) < std::tie(b.tensor, b.box);
  });
  return layout;
}

LocalStream Lower(const Job& job,
                  const Plan& plan,
                  const std::vector<Move>& moves,
                  StreamEnd end,
                  std::uint64_t chunk_bytes) {
  const WorkerIndex worker = end == StreamEnd::kSource ? moves[0].src : moves[0].dst;
  absl::StatusOr<LocalStream> stream =
      LowerStream(moves, job.tensors, Bound(job, plan, worker), end, chunk_bytes);
  if (!stream.ok()) throw std::runtime_error(std::string(stream.status().message()));
  return *std::move(stream);
}

void Carry(const LocalStream& out,
           const LocalStream& in,
           std::uint64_t chunk_bytes,
           std::vector<Memory>& memory) {
  if (out.bytes != in.bytes || out.chunks.size() != in.chunks.size()) {
    throw std::runtime_error("the ends of a stream disagree on its size or chunks");
  }
  for (std::size_t c = 0; c < out.chunks.size(); ++c) {
    const Bytes packed = Gather(out.chunks[c], memory[out.src.value()]);
    if (packed.size() != out.chunks[c].bytes || packed.size() != in.chunks[c].bytes ||
        packed.empty() || packed.size() > chunk_bytes) {
      throw std::runtime_error("chunk " + std::to_string(c) + " has a wrong size");
    }
    Scatter(in.chunks[c], packed, memory[in.dst.value()]);
  }
}

}  // namespace

std::uint64_t HashValue(const Tensor& tensor, const Index& /*at*/, std::uint64_t linear) {
  return XXH3_64bits_withSeed(tensor.name.data(), tensor.name.size(), linear);
}

Memory Filled(const Job& job, const Layout& layout, const ElementValue& value) {
  Memory memory;
  for (const Buffer& buffer : layout.buffers) memory.emplace_back(buffer.bytes, kHole);
  for (const Piece& piece : layout.pieces) {
    const Tensor& tensor = job.tensor(piece.tensor);
    const auto size = static_cast<std::size_t>(DtypeBytes(tensor.dtype));
    ForEachIndex(piece.box, [&](const Index& at) {
      std::uint64_t linear = 0;
      std::uint64_t offset = piece.offset_bytes;
      for (std::size_t d = 0; d < at.size(); ++d) {
        linear = linear * static_cast<std::uint64_t>(tensor.shape[d]) +
                 static_cast<std::uint64_t>(at[d]);
        offset += static_cast<std::uint64_t>((at[d] - piece.box.lo()[d]) * piece.strides[d]) * size;
      }
      const std::uint64_t bits = value(tensor, at, linear);
      if (offset + size > memory[piece.buffer].size()) {
        throw std::runtime_error("a piece of " + tensor.name + " leaves its buffer");
      }
      std::memcpy(memory[piece.buffer].data() + offset, &bits, size);
    });
  }
  return memory;
}

std::vector<Memory> Execute(const Job& job,
                            const Plan& plan,
                            std::uint64_t chunk_bytes,
                            const ElementValue& value) {
  std::vector<Memory> memory;
  for (const Layout& layout : job.layouts) {
    memory.push_back(Filled(job, layout, value));
    if (layout.role != Role::kRollout) continue;
    for (Bytes& bytes : memory.back()) bytes.assign(bytes.size(), kHole);
  }
  std::map<std::pair<WorkerIndex, WorkerIndex>, std::vector<Move>> streams;
  for (const Move& move : AllMoves(plan)) streams[{move.src, move.dst}].push_back(move);
  for (const auto& [pair, moves] : streams) {
    Carry(Lower(job, plan, moves, StreamEnd::kSource, chunk_bytes),
          Lower(job, plan, moves, StreamEnd::kDestination, chunk_bytes), chunk_bytes, memory);
  }
  return memory;
}

}  // namespace wb::test
