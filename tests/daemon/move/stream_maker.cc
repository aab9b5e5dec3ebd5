#include "tests/daemon/move/stream_maker.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace wb::test {
namespace {

/// A stretch of a chunk: [begin, end) of its packed bytes. Cuts `where` to what lies in it.
void AddTied(LocalChunk& chunk, std::uint64_t begin, const TiedBlock& tied) {
  const std::uint64_t end = begin + chunk.bytes;
  const std::uint64_t tied_end = tied.begin + tied.where.block.bytes();
  const std::uint64_t from = std::max(begin, tied.begin);
  const std::uint64_t to = std::min(end, tied_end);
  if (from >= to) return;
  chunk.extra.push_back(
      {from - begin, {tied.where.buffer, tied.where.block, from - tied.begin, to - tied.begin}});
}

}  // namespace

LocalStream MakeStream(const std::vector<BufferBlock>& blocks,
                       const std::vector<TiedBlock>& tied,
                       std::uint64_t chunk_bytes) {
  LocalStream stream;
  for (const BufferBlock& at : blocks) {
    std::uint64_t begin = 0;
    while (begin < at.block.bytes()) {
      if (stream.chunks.empty() || stream.chunks.back().bytes == chunk_bytes) {
        stream.chunks.emplace_back();
      }
      LocalChunk& chunk = stream.chunks.back();
      const std::uint64_t bytes = std::min(at.block.bytes() - begin, chunk_bytes - chunk.bytes);
      chunk.parts.push_back({at.buffer, at.block, begin, begin + bytes});
      chunk.bytes += bytes;
      begin += bytes;
    }
    stream.bytes += at.block.bytes();
  }
  std::uint64_t begin = 0;
  for (LocalChunk& chunk : stream.chunks) {
    for (const TiedBlock& block : tied) AddTied(chunk, begin, block);
    begin += chunk.bytes;
  }
  return stream;
}

std::vector<std::uint64_t> AddressesOf(const ByteBlock& block) {
  std::vector<std::uint64_t> starts{block.offset};
  for (const ByteDim& dim : block.dims) {
    std::vector<std::uint64_t> next;
    for (const std::uint64_t start : starts) {
      for (std::uint64_t i = 0; i < dim.extent; ++i) next.push_back(start + i * dim.stride_bytes);
    }
    starts = std::move(next);
  }
  std::vector<std::uint64_t> addresses;
  for (const std::uint64_t start : starts) {
    for (std::uint64_t i = 0; i < block.run_bytes; ++i) addresses.push_back(start + i);
  }
  return addresses;
}

std::uint64_t Draw(std::mt19937_64& rng, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(rng);
}

void FillRandom(std::mt19937_64& rng, std::span<std::byte> memory) {
  while (!memory.empty()) {
    const std::uint64_t word = rng();
    const std::size_t bytes = std::min(memory.size(), sizeof(word));
    std::memcpy(memory.data(), &word, bytes);
    memory = memory.subspan(bytes);
  }
}

RandomEnd MakeRandomEnd(std::mt19937_64& rng, std::uint64_t bytes, std::uint64_t& cursor) {
  RandomEnd end;
  while (end.bytes < bytes) {
    const std::uint64_t left = bytes - end.bytes;
    cursor += Draw(rng, 0, 40);  // a hole
    ByteBlock block = Run(cursor, Draw(rng, 1, std::min<std::uint64_t>(left, 3000)));
    std::uint64_t span = block.run_bytes;
    const std::uint64_t ndim = Draw(rng, 0, 2);
    for (std::uint64_t d = 0; d < ndim; ++d) {
      const std::uint64_t most = std::min<std::uint64_t>(left / block.bytes(), 6);
      if (most < 2) break;
      const ByteDim outer{Draw(rng, 2, most), span + Draw(rng, 0, 9)};
      span = (outer.extent - 1) * outer.stride_bytes + span;
      block.dims.insert(block.dims.begin(), outer);
    }
    cursor += span;
    end.bytes += block.bytes();
    end.blocks.push_back({0, block});
  }
  return end;
}

}  // namespace wb::test
