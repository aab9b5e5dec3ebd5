#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/daemon/move/move_world.h"
#include "tests/daemon/move/stream_maker.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb::test {

inline constexpr RegionId kRegion{1};
inline constexpr RegionId kOther{2};
inline constexpr std::uint32_t kStream = 7;

using Blocks = std::vector<BufferBlock>;

/// Whose memory a stream goes from and to.
struct Places {
  Where source = Where::kHost;
  Where target = Where::kHost;
};

/// All there are: the test case that asks runs once for each.
inline Places AnyPlaces() {
  const Where source = GENERATE(Where::kHost, Where::kDevice);
  const Where target = GENERATE(Where::kHost, Where::kDevice);
  return {source, target};
}

/// Two nodes with a region each: "t" sends to "r".
struct Pair {
  explicit Pair(std::uint64_t bytes,
                const ExecutorOptions& options = TestOptions(),
                Places places = {},
                const std::string& transports = "loopback")
      : world(transports),
        t(world.Add("t", options)),
        r(world.Add("r", options)),
        source(t.AddMemory(kRegion, bytes, places.source)),
        target(r.AddMemory(kRegion, bytes, places.target)) {
    std::mt19937_64 rng = TestRng(0);
    FillRandom(rng, source);
    Reset();
  }

  void Reset() { std::fill(target.begin(), target.end(), kSentinel); }

  std::vector<NodeWork> Work(std::uint64_t attempt,
                             const Blocks& from,
                             const Blocks& to,
                             const std::vector<TiedBlock>& tied = {}) {
    AttemptWork sends = WorkOf(attempt);
    sends.peers = {r.Address()};
    sends.out.push_back({kStream, "r", t.Bind(MakeStream(from, kTestChunk), kRegion)});
    AttemptWork receives = WorkOf(attempt);
    receives.peers = {t.Address()};
    receives.in.push_back({kStream, "t", r.Bind(MakeStream(to, tied, kTestChunk), kRegion)});
    return {{&t, sends}, {&r, receives}};
  }

  /// What the target must hold after a delivery, byte by byte.
  std::vector<std::byte> Expected(const Blocks& from,
                                  const Blocks& to,
                                  const std::vector<TiedBlock>& tied = {}) const {
    std::vector<std::byte> packed;
    for (const BufferBlock& at : from) {
      for (const std::uint64_t address : AddressesOf(at.block)) packed.push_back(source[address]);
    }
    std::vector<std::byte> image(target.size(), kSentinel);
    std::size_t next = 0;
    for (const BufferBlock& at : to) {
      for (const std::uint64_t address : AddressesOf(at.block)) image[address] = packed[next++];
    }
    for (const TiedBlock& at : tied) {
      std::size_t from_byte = at.begin;
      for (const std::uint64_t address : AddressesOf(at.where.block)) {
        image[address] = packed[from_byte++];
      }
    }
    return image;
  }

  void RequireDelivered(const Blocks& from,
                        const Blocks& to,
                        const std::vector<TiedBlock>& tied = {}) {
    for (std::uint64_t version = 1; version <= 3; ++version) {
      Reset();
      std::mt19937_64 rng = TestRng(static_cast<int>(version));
      FillRandom(rng, source);
      Deliver(world, Work(version, from, to, tied));
      const std::vector<std::byte> image = Expected(from, to, tied);
      REQUIRE(std::equal(target.begin(), target.end(), image.begin()));
    }
    REQUIRE(t.executor->idle());
    REQUIRE(r.executor->idle());
  }

  MoveWorld world;
  MoveNode& t;
  MoveNode& r;
  std::span<std::byte> source;
  std::span<std::byte> target;
};

}  // namespace wb::test
