#include "daemon/move/mover.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include <spdlog/spdlog.h>

#include "planner/base/mutex.h"
#include "tests/daemon/move/move_pair.h"
#include "tests/daemon/move/stream_maker.h"
#include "tests/support/allocation_count.h"
#include "tests/support/catch.h"
#include "tests/support/sealed_memory.h"
#include "tests/support/seed.h"
#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

using Clock = std::chrono::steady_clock;
using Catch::Matchers::Contains;

/// Remembers what a mover tells, for a test that waits for it. Thread-safe.
class AwaitedEvents final : public MoverEvents {
 public:
  void OnPrepared(AttemptId attempt) override { Note("prepared", attempt); }
  void OnStaged(AttemptId attempt, const BytesByPath& bytes) override {
    {
      const MutexLock lock(mu_);
      bytes_ = bytes;
    }
    Note("staged", attempt);
  }
  void OnMeasured(AttemptId /*attempt*/, const AttemptTimes& times) override {
    const MutexLock lock(mu_);
    times_ = times;
  }
  void OnFailed(AttemptId attempt, const absl::Status& status) override {
    {
      const MutexLock lock(mu_);
      failure_ = status;
    }
    Note("failed", attempt);
  }
  void OnEnded(AttemptId attempt) override { Note("ended", attempt); }
  void OnSnapshot(SnapshotId snapshot, const absl::Status& status) override {
    Note(status.ok() ? "snapshot" : "no snapshot", AttemptId(snapshot.value()));
  }

  void Note(const std::string& what, AttemptId attempt) {
    const MutexLock lock(mu_);
    told_.emplace(what, attempt.value());
    changed_.NotifyAll();
  }
  void Await(const std::string& what, std::uint64_t attempt) {
    const auto deadline = Clock::now() + Slack(std::chrono::seconds(20));
    const MutexLock lock(mu_);
    while (!told_.contains({what, attempt})) {
      INFO(what << " of attempt " << attempt << "; failure: " << failure_.ToString());
      REQUIRE(changed_.WaitUntil(mu_, deadline));
    }
  }
  bool Told(const std::string& what, std::uint64_t attempt) {
    const MutexLock lock(mu_);
    return told_.contains({what, attempt});
  }
  BytesByPath bytes() {
    const MutexLock lock(mu_);
    return bytes_;
  }
  AttemptTimes times() {
    const MutexLock lock(mu_);
    return times_;
  }
  absl::Status failure() {
    const MutexLock lock(mu_);
    return failure_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::set<std::pair<std::string, std::uint64_t>> told_ ABSL_GUARDED_BY(mu_);
  AttemptTimes times_ ABSL_GUARDED_BY(mu_);
  BytesByPath bytes_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

MoverOptions OptionsOf(const std::string& node, const std::string& transports = "tcp") {
  MoverOptions options;
  options.node = node;
  options.incarnation = Incarnation(node == "t" ? 11 : 22);
  options.interface = "lo";
  options.arena_bytes = 16 << 20;
  options.transports = transports;
  return options;
}

/// A mover on lo with one region of sealed memory.
struct Daemon {
  Daemon(const std::string& node, std::uint64_t bytes, const std::string& transports = "tcp")
      : memory(bytes),
        name(node),
        mover(Mover::Start(OptionsOf(node, transports), events).value()) {
    spdlog::set_level(spdlog::level::off);
    mover->AddRegion(kRegion, memory.Open(RegionAccess::kReadWrite));
  }
  PeerAddress Address() const { return {name, OptionsOf(name).incarnation, mover->address()}; }

  SealedMemory memory;
  std::string name;
  AwaitedEvents events;
  std::unique_ptr<Mover> mover;  // first to go
};

BoundStream Bind(LocalStream stream, std::uint64_t offset = 0) {
  return {std::move(stream), {kRegion}, {offset}};
}

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kBytes = 24 * kMiB;

/// "t" sends its first half to "r": in one run, in rows, and small odd ones; "r" copies within.
struct Delivery {
  void Run(Daemon& t, Daemon& r, std::uint64_t version) {
    AttemptWork sends = WorkOf(version);
    sends.peers = {r.Address()};
    AttemptWork receives = WorkOf(version);
    receives.peers = {t.Address()};
    for (std::uint32_t s = 0; s < from.size(); ++s) {
      sends.out.push_back({s, "r", Bind(MakeStream(from[s], kMiB))});
      receives.in.push_back({s, "t", Bind(MakeStream(to[s], kMiB))});
    }
    receives.copies.push_back(
        {Bind(MakeStream(local_from, kMiB)), Bind(MakeStream(local_to, kMiB))});
    t.mover->Prepare(sends);
    r.mover->Prepare(receives);
    t.events.Await("prepared", version);
    r.events.Await("prepared", version);
    t.mover->Go(sends.attempt);
    r.mover->Go(sends.attempt);
  }

  void Place(const std::vector<std::byte>& source,
             const Blocks& source_blocks,
             const Blocks& target_blocks,
             std::vector<std::byte>& image) const {
    std::vector<std::byte> packed;
    for (const BufferBlock& at : source_blocks) {
      for (const std::uint64_t byte : AddressesOf(at.block)) packed.push_back(source[byte]);
    }
    std::size_t next = 0;
    for (const BufferBlock& at : target_blocks) {
      for (const std::uint64_t byte : AddressesOf(at.block)) image[byte] = packed[next++];
    }
  }

  std::vector<Blocks> from{{{0, wb::test::Run(0, 5 * kMiB + 13)}},
                           {{0, {6 * kMiB, 3000, {{1000, 4096}}}}},
                           {{0, wb::test::Run(11 * kMiB, 77)}},
                           {{0, {11 * kMiB + 100, 2, {{300, 6}, {100, 2000}}}}}};
  std::vector<Blocks> to{{{0, wb::test::Run(1, 5 * kMiB + 13)}},
                         {{0, {6 * kMiB, 500, {{6000, 700}}}}},
                         {{0, wb::test::Run(11 * kMiB, 77)}},
                         {{0, wb::test::Run(11 * kMiB + 1000, 60'000)}}};
  Blocks local_from{{0, {20 * kMiB, 100, {{5000, 300}}}}};
  Blocks local_to{{0, {14 * kMiB, 200, {{2500, 300}}}}};
};

TEST_CASE("two movers deliver over TCP and shared memory, three versions in a row", "[move][ucx]") {
  const std::string transports = GENERATE("tcp", "shm");
  CAPTURE(transports);
  INFO("WB_TEST_SEED=" << RunSeed());
  std::mt19937_64 rng = TestRng(0);
  Daemon t("t", kBytes, transports);
  Daemon r("r", kBytes, transports);
  Delivery delivery;
  for (std::uint64_t version = 1; version <= 3; ++version) {
    FillRandom(rng, t.memory.bytes());
    std::fill(r.memory.bytes().begin(), r.memory.bytes().end(), kSentinel);
    FillRandom(rng, r.memory.bytes().subspan(20 * kMiB));
    const std::vector<std::byte> source(t.memory.bytes().begin(), t.memory.bytes().end());
    std::vector<std::byte> image(r.memory.bytes().begin(), r.memory.bytes().end());
    delivery.Place(image, delivery.local_from, delivery.local_to, image);
    for (std::size_t s = 0; s < delivery.from.size(); ++s) {
      delivery.Place(source, delivery.from[s], delivery.to[s], image);
    }
    delivery.Run(t, r, version);
    t.events.Await("staged", version);
    r.events.Await("staged", version);
    REQUIRE(std::equal(image.begin(), image.end(), r.memory.bytes().begin()));
    const AttemptTimes times = r.events.times();
    REQUIRE(times.destinations.begin()->second.wire_seconds > 0);
    REQUIRE(times.destinations.begin()->second.scatter_seconds > 0);
    t.mover->Finish(AttemptId(version));
    r.mover->Finish(AttemptId(version));
    t.events.Await("ended", version);
    r.events.Await("ended", version);
  }
  const std::uint64_t sent = 5 * kMiB + 13 + 3'000'000 + 77 + 60'000;
  const bool shm = transports == "shm";
  REQUIRE(r.events.bytes() == BytesByPath{shm ? 0 : sent, shm ? sent : 0, 500'000});
  const MoverCounters counters = r.mover->Counters().value();
  REQUIRE(counters.lanes.size() == 1);
  REQUIRE(counters.lanes.front().fabric == transports);
  REQUIRE(counters.lanes.front().received_bytes == 3 * sent);
  REQUIRE(counters.refused_chunks + counters.late_chunks == 0);
  REQUIRE(t.mover->Counters().value().lanes.front().sent_bytes == 3 * sent);
  REQUIRE(t.mover->Counters().value().lanes.front().connects == 1);
}

/// Allocations between Go and the last byte of a delivery of so many chunks.
std::uint64_t AllocationsOf(Daemon& t, Daemon& r, std::uint64_t version, const ByteBlock& block) {
  constexpr std::uint64_t kSmall = 64 << 10;  // small chunks make many
  AttemptWork sends = WorkOf(version);
  sends.peers = {r.Address()};
  sends.out.push_back({0, "r", Bind(MakeStream({{0, block}}, kSmall))});
  AttemptWork receives = WorkOf(version);
  receives.peers = {t.Address()};
  receives.in.push_back({0, "t", Bind(MakeStream({{0, block}}, kSmall))});
  t.mover->Prepare(sends);
  r.mover->Prepare(receives);
  t.events.Await("prepared", version);
  r.events.Await("prepared", version);
  const std::uint64_t before = AllocationCount();
  r.mover->Go(sends.attempt);
  t.mover->Go(sends.attempt);
  r.events.Await("staged", version);
  const std::uint64_t during = AllocationCount() - before;
  t.mover->Finish(sends.attempt);
  r.mover->Finish(sends.attempt);
  t.events.Await("ended", version);
  r.events.Await("ended", version);
  return during;
}

TEST_CASE("a mover that is warm allocates by the attempt, not by the chunk", "[move][ucx]") {
  Daemon t("t", kBytes);
  Daemon r("r", kBytes);
  const bool rows = GENERATE(false, true);
  const auto block = [rows](std::uint64_t chunks) {
    const std::uint64_t bytes = chunks << 16;
    return rows ? ByteBlock{0, 256, {{bytes / 256, 260}}} : Run(0, bytes);
  };
  AllocationsOf(t, r, 1, block(300));
  const std::uint64_t few = AllocationsOf(t, r, 2, block(30));
  const std::uint64_t many = AllocationsOf(t, r, 3, block(300));
  INFO("30 chunks: " << few << ", 300 chunks: " << many);
  REQUIRE(many < few + 60);
}

TEST_CASE("after an abort over TCP memory stays as it is, and regions can go", "[move][ucx]") {
  const std::chrono::microseconds delay(GENERATE(0, 300, 1000, 3000));
  Daemon t("t", kBytes);
  Daemon r("r", kBytes);
  Delivery delivery;
  std::fill(t.memory.bytes().begin(), t.memory.bytes().end(), std::byte{1});
  delivery.Run(t, r, 1);
  // Not a synchronisation: any moment is a good one to abort at.
  const auto moment = Clock::now() + delay;
  while (Clock::now() < moment) {
  }
  r.mover->Abort(AttemptId(1));
  r.events.Await("ended", 1);
  std::fill(r.memory.bytes().begin(), r.memory.bytes().end(), kSentinel);
  t.mover->Abort(AttemptId(1));
  t.events.Await("ended", 1);
  r.mover->RemoveRegion(kRegion, [&r] { r.events.Note("removed", AttemptId(1)); });
  r.events.Await("removed", 1);
  REQUIRE(std::all_of(r.memory.bytes().begin(), r.memory.bytes().end(),
                      [](std::byte byte) { return byte == kSentinel; }));

  // The same movers deliver the next version, into memory opened anew.
  r.mover->AddRegion(kRegion, r.memory.Open(RegionAccess::kReadWrite));
  delivery.Run(t, r, 2);
  t.events.Await("staged", 2);
  r.events.Await("staged", 2);
  REQUIRE(r.memory.bytes()[1] == std::byte{1});
}

TEST_CASE("a mover that goes away in the middle fails its peer by name", "[move][ucx]") {
  Daemon t("t", kBytes);
  Delivery delivery;
  {
    Daemon r("r", kBytes);
    AttemptWork sends = WorkOf(1);
    sends.peers = {r.Address()};
    sends.out.push_back({0, "r", Bind(MakeStream(delivery.from[0], kMiB))});
    AttemptWork receives = WorkOf(1);
    receives.peers = {t.Address()};
    receives.in.push_back({0, "t", Bind(MakeStream(delivery.to[0], kMiB))});
    t.mover->Prepare(sends);
    r.mover->Prepare(receives);
    t.events.Await("prepared", 1);
    r.events.Await("prepared", 1);
    t.mover->Go(AttemptId(1));  // the receiver does not: its chunks are held
    t.mover->Counters().value();
  }
  t.events.Await("failed", 1);
  REQUIRE_THAT(std::string(t.events.failure().message()), Contains(" r"));
  t.mover->Abort(AttemptId(1));
  t.events.Await("ended", 1);
}

TEST_CASE("a peer that cannot be reached fails the preparation", "[move][ucx]") {
  Daemon t("t", kBytes);
  PeerAddress gone;
  {
    const Daemon r("r", kMiB);
    gone = r.Address();
  }
  AttemptWork sends = WorkOf(1);
  sends.peers = {gone};
  sends.out.push_back({0, "r", Bind(MakeStream({{0, Run(0, kMiB)}}, kMiB))});
  t.mover->Prepare(sends);
  t.events.Await("failed", 1);
  REQUIRE_THAT(std::string(t.events.failure().message()), Contains("r"));
  REQUIRE_FALSE(t.events.Told("prepared", 1));
}

TEST_CASE("a mover on an interface that is not there does not start", "[move][ucx]") {
  AwaitedEvents events;
  MoverOptions options = OptionsOf("t");
  options.interface = "no-such-interface";
  REQUIRE(Mover::Start(options, events).status().code() == absl::StatusCode::kNotFound);
  options = OptionsOf("t");
  options.arena_bytes = 10;
  REQUIRE(Mover::Start(options, events).status().code() == absl::StatusCode::kInvalidArgument);
  options = OptionsOf("t");
  options.copy_threads = -1;
  REQUIRE(Mover::Start(options, events).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a mover with attempts in progress can go", "[move][ucx]") {
  Daemon t("t", kBytes);
  Daemon r("r", kBytes);
  Delivery delivery;
  delivery.Run(t, r, 1);
  r.mover.reset();
  REQUIRE(r.events.Told("ended", 1));
}

}  // namespace
}  // namespace wb::test
