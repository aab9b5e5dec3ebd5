#include <chrono>
#include <numeric>
#include <vector>

#include "daemon/move/execute/attempt.h"
#include "daemon/move/execute/fifo.h"
#include "daemon/move/execute/operation.h"
#include "daemon/move/execute/region_uses.h"
#include "daemon/move/execute/slot_pool.h"
#include "tests/support/catch.h"

namespace wb {
namespace {

static_assert(!CanStep(AttemptState::kPreparing, AttemptState::kMoving));
static_assert(!CanStep(AttemptState::kFailed, AttemptState::kStaged));
static_assert(!CanStep(AttemptState::kAborting, AttemptState::kFailed));
static_assert(CanStep(AttemptState::kFinishing, AttemptState::kAborting));

TEST_CASE("a fifo gives in order and takes out what is asked for", "[move]") {
  Fifo<int> fifo;
  for (int i = 0; i < 10; ++i) fifo.push(i);
  REQUIRE(fifo.pop() == 0);
  REQUIRE(fifo.pop() == 1);
  std::vector<int> odd;
  fifo.Extract([](int i) { return i % 2 == 1; }, [&odd](int i) { odd.push_back(i); });
  REQUIRE(odd == std::vector<int>{3, 5, 7, 9});
  fifo.push(10);
  std::vector<int> left;
  while (!fifo.empty()) left.push_back(fifo.pop());
  REQUIRE(left == std::vector<int>{2, 4, 6, 8, 10});
}

TEST_CASE("a fifo that is never empty keeps its order over many rounds", "[move]") {
  Fifo<int> fifo;
  int in = 0;
  int out = 0;
  for (int i = 0; i < 3; ++i) fifo.push(in++);
  for (int round = 0; round < 10'000; ++round) {
    fifo.push(in++);
    REQUIRE(fifo.pop() == out++);
  }
  REQUIRE(fifo.size() == 3);
}

TEST_CASE("an operation's tag is not good for the next in its place", "[move]") {
  OperationTable table(&Timers::Clock::now);
  Operation& first = table.New(Operation::Phase::kSending);
  const std::uint64_t tag = first.tag;
  REQUIRE(table.Find(tag) == &first);
  table.Free(first);
  REQUIRE(table.Find(tag) == nullptr);
  Operation& second = table.New(Operation::Phase::kPacking);
  REQUIRE(&second == &first);
  REQUIRE(table.Find(tag) == nullptr);
  REQUIRE(table.Find(second.tag) == &second);
  REQUIRE(table.Find(~std::uint64_t{0}) == nullptr);
  REQUIRE(table.size() == 1);
}

TEST_CASE("a phase lasts while at least one operation is in it", "[move]") {
  using std::chrono::seconds;
  Timers::Clock::time_point now;
  OperationTable table([&now] { return now; });
  WorkerTimes times;
  Operation& first = table.New(Operation::Phase::kPacking);
  table.Time(first, &times.pack);
  now += seconds(1);
  Operation& second = table.New(Operation::Phase::kPacking);
  table.Time(second, &times.pack);
  now += seconds(2);
  table.Time(first, &times.wire);
  now += seconds(4);
  table.Free(second);
  now += seconds(8);
  table.Free(first);
  now += seconds(16);
  Operation& third = table.New(Operation::Phase::kPacking);
  table.Time(third, &times.pack, &times.copy);
  now += seconds(32);
  table.Free(third);
  table.Free(table.New(Operation::Phase::kHelloIn));  // counts for nothing
  CHECK(times.Get().pack_seconds == 1 + 2 + 4 + 32);
  CHECK(times.Get().wire_seconds == 4 + 8);
  CHECK(times.Get().scatter_seconds == 0);
  CHECK(times.Get().copy_seconds == 32);
}

TEST_CASE("slots lie side by side inside their stretch", "[move]") {
  std::vector<std::byte> memory(1000);
  SlotPool pool({RegionId(3), 5000, 1000}, memory, 300);
  REQUIRE(pool.free() == 3);
  const std::uint32_t first = pool.Take();
  const std::uint32_t second = pool.Take();
  const std::uint32_t third = pool.Take();
  REQUIRE(pool.free() == 0);
  REQUIRE(first + second + third == 3);
  REQUIRE(pool.Ref(2, 100) == MemoryRef{RegionId(3), 5600, 100});
  REQUIRE(pool.Memory(2, 300).data() == memory.data() + 600);
  pool.Give(second);
  REQUIRE(pool.Take() == second);
}

TEST_CASE("a region goes when its last user has released it", "[move]") {
  RegionTable table;
  REQUIRE(table.Add(RegionId(1), Region::AllocateArena(100).value()).ok());
  REQUIRE(table.Add(RegionId(2), Region::AllocateArena(100).value()).ok());
  RegionUses uses(table);
  REQUIRE(uses.Acquire({RegionId(1), RegionId(2)}).ok());
  REQUIRE(uses.Acquire({RegionId(1)}).ok());
  int removed = 0;
  uses.Remove(RegionId(1), [&removed] { ++removed; });
  uses.Release({RegionId(1), RegionId(2)});
  REQUIRE(removed == 0);
  REQUIRE(table.size() == 2);

  // None may begin to use it; and what is refused counts nothing.
  REQUIRE(uses.Acquire({RegionId(2), RegionId(1)}).code() == absl::StatusCode::kFailedPrecondition);
  uses.Remove(RegionId(2), nullptr);
  REQUIRE(table.size() == 1);
  uses.Release({RegionId(1)});
  REQUIRE(removed == 1);
  REQUIRE(table.size() == 0);
}

TEST_CASE("a region that nobody uses goes at once, an unknown one is answered too", "[move]") {
  RegionTable table;
  REQUIRE(table.Add(RegionId(1), Region::AllocateArena(100).value()).ok());
  RegionUses uses(table);
  int removed = 0;
  uses.Remove(RegionId(1), [&removed] { ++removed; });
  uses.Remove(RegionId(1), [&removed] { ++removed; });
  REQUIRE(removed == 2);
}

}  // namespace
}  // namespace wb
