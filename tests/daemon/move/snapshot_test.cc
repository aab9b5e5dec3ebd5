#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "tests/daemon/move/move_pair.h"
#include "tests/daemon/move/move_world.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb::test {
namespace {

using Bytes = std::vector<std::byte>;

/// A node with the memory of workers, and snapshots' for each.
class SnapshotWorld {
 public:
  explicit SnapshotWorld(const ExecutorOptions& options = TestOptions())
      : node(world.Add("t", options)) {}

  struct Memory {
    std::span<std::byte> source;
    std::span<std::byte> snapshot;
    SnapshotPart part;
  };
  Memory Add(std::uint64_t bytes, Where where = Where::kHost, std::uint64_t offset = 0) {
    const RegionId from(next_region_++);
    const RegionId to(next_region_++);
    Memory memory;
    memory.source = node.AddMemory(from, offset + bytes, where).subspan(offset);
    memory.snapshot = node.AddMemory(to, bytes);
    memory.part = {{from, offset, bytes}, to};
    std::mt19937_64 rng = TestRng(static_cast<int>(next_region_));
    FillRandom(rng, memory.source);
    return memory;
  }
  void Take(std::uint64_t id, const std::vector<SnapshotPart>& parts) {
    node.executor->TakeSnapshot({SnapshotId(id), parts});
  }
  void AwaitEnds(std::size_t count) {
    world.DriveUntil([&] { return node.events.snapshots.size() == count; });
    REQUIRE(node.executor->idle());
  }
  absl::Status EndOf(std::uint64_t id) const {
    for (const auto& [snapshot, status] : node.events.snapshots) {
      if (snapshot == SnapshotId(id)) return status;
    }
    return absl::UnknownError("it has not ended");
  }

  MoveWorld world;
  MoveNode& node;

 private:
  std::uint64_t next_region_ = 1;
};

bool Same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST_CASE("a snapshot holds every byte of many regions, of the host's memory and a device's",
          "[move][snapshot]") {
  SnapshotWorld world;
  std::vector<SnapshotWorld::Memory> memories;
  std::vector<SnapshotPart> parts;
  std::mt19937_64 rng = TestRng(0);
  for (int i = 0; i < 40; ++i) {
    memories.push_back(world.Add(Draw(rng, 1, 5 * kTestChunk), DrawWhere(rng), Draw(rng, 0, 100)));
    parts.push_back(memories.back().part);
  }
  world.Take(1, parts);
  world.AwaitEnds(1);
  REQUIRE(world.EndOf(1).ok());
  for (const auto& memory : memories) REQUIRE(Same(memory.source, memory.snapshot));
  REQUIRE(world.node.device_copies.jobs() > 0);
}

TEST_CASE("a snapshot of nothing is taken at once", "[move][snapshot]") {
  SnapshotWorld world;
  world.Take(1, {});
  REQUIRE(world.EndOf(1).ok());
}

TEST_CASE("snapshots are taken whole, in their order: an older one never writes after a newer",
          "[move][snapshot]") {
  SnapshotWorld world;
  const auto memory = world.Add(50 * kTestChunk, Where::kDevice);
  const auto other = world.Add(3 * kTestChunk);
  // The first has a slow source, the others a quick one, and the last goes where the first does.
  world.node.device.SetDelay(std::chrono::milliseconds(1));
  world.Take(1, {memory.part});
  world.Take(2, {other.part});
  const auto quick = world.Add(50 * kTestChunk);
  world.Take(3, {{quick.part.from, memory.part.to}});
  world.AwaitEnds(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE(world.node.events.snapshots[i].first == SnapshotId(i + 1));
  }
  REQUIRE(Same(memory.snapshot, quick.source));
}

TEST_CASE("a snapshot that is dropped ends once nothing of it is under way", "[move][snapshot]") {
  SnapshotWorld world;
  const auto first = world.Add(1000 * kTestChunk);
  const auto second = world.Add(kTestChunk);
  const Bytes before(second.snapshot.begin(), second.snapshot.end());
  world.Take(1, {first.part});
  world.Take(2, {second.part});
  SECTION("the one that is being copied: its regions stay until then") {
    bool removed = false;
    world.node.executor->DropSnapshot(SnapshotId(1));
    world.node.executor->RemoveRegion(first.part.to, [&removed] { removed = true; });
    REQUIRE_FALSE(removed);
    world.AwaitEnds(2);
    REQUIRE(absl::IsCancelled(world.EndOf(1)));
    REQUIRE(world.EndOf(2).ok());
    REQUIRE(removed);
    // What was under way, and no more.
    const std::uint64_t most = 2 * kTestChunk + second.source.size();
    REQUIRE(world.node.copies.copied_bytes() <= most);
  }
  SECTION("one that has not begun, at once") {
    world.node.executor->DropSnapshot(SnapshotId(2));
    REQUIRE(absl::IsCancelled(world.EndOf(2)));
    world.AwaitEnds(2);
    REQUIRE(world.EndOf(1).ok());
    REQUIRE(Same(second.snapshot, before));
  }
  SECTION("all of them, when the mover ends") {
    world.node.executor->AbortAll();
    world.AwaitEnds(2);
    REQUIRE(absl::IsCancelled(world.EndOf(1)));
    REQUIRE(absl::IsCancelled(world.EndOf(2)));
  }
  SECTION("one that has ended, without a word") {
    world.AwaitEnds(2);
    world.node.executor->DropSnapshot(SnapshotId(1));
    REQUIRE(world.node.events.snapshots.size() == 2);
  }
}

TEST_CASE("what cannot be copied is named, and keeps nothing", "[move][snapshot]") {
  SnapshotWorld world;
  auto memory = world.Add(100);
  const auto [part, text] = GENERATE_COPY(
      std::pair{SnapshotPart{{RegionId(77), 0, 100}, memory.part.to}, "region 77 is not open"},
      std::pair{SnapshotPart{{memory.part.from.region, 1, 100}, memory.part.to},
                "region 1 has 100 bytes, want 100 from offset 1"},
      std::pair{SnapshotPart{memory.part.from, RegionId(77)}, "region 77 is not open"});
  world.Take(1, {memory.part, part});
  REQUIRE(world.EndOf(1).message() == text);
  bool removed = false;
  world.node.executor->RemoveRegion(memory.part.to, [&removed] { removed = true; });
  REQUIRE(removed);
}

}  // namespace
}  // namespace wb::test
