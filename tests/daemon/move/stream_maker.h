#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "daemon/move/attempt_work.h"
#include "planner/base/byte_block.h"

namespace wb::test {

/// A block of one buffer.
struct BufferBlock {
  std::uint32_t buffer = 0;
  ByteBlock block;
};

/// Further landings: bytes [begin, end) of the stream's packed order also go to `where`.
struct TiedBlock {
  std::uint64_t begin = 0;
  BufferBlock where;
};

/// Cuts the packed bytes of `blocks`, one after the other, into chunks.
LocalStream MakeStream(const std::vector<BufferBlock>& blocks,
                       const std::vector<TiedBlock>& tied,
                       std::uint64_t chunk_bytes);
inline LocalStream MakeStream(const std::vector<BufferBlock>& blocks, std::uint64_t chunk_bytes) {
  return MakeStream(blocks, {}, chunk_bytes);
}

inline ByteBlock Run(std::uint64_t offset, std::uint64_t bytes) {
  return {offset, bytes, {}};
}

/// Where the packed bytes of a block lie in their buffer, one by one: the slow oracle of every
/// copy.
std::vector<std::uint64_t> AddressesOf(const ByteBlock& block);

/// One end of a stream, in blocks of buffer 0 that do not overlap.
struct RandomEnd {
  std::vector<BufferBlock> blocks;
  std::uint64_t bytes = 0;
};
/// Random disjoint blocks with exactly `bytes` bytes in all, placed from `cursor` on.
RandomEnd MakeRandomEnd(std::mt19937_64& rng, std::uint64_t bytes, std::uint64_t& cursor);

std::uint64_t Draw(std::mt19937_64& rng, std::uint64_t low, std::uint64_t high);
void FillRandom(std::mt19937_64& rng, std::span<std::byte> memory);

}  // namespace wb::test
