#include "daemon/move/execute/executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/move/move_pair.h"
#include "tests/daemon/move/move_world.h"
#include "tests/daemon/move/stream_maker.h"
#include "tests/support/catch.h"
#include "tests/support/open_descriptors.h"
#include "tests/support/seed.h"
#include "tests/support/time_slack.h"
#include "transport/copy/copy_pool.h"

namespace wb::test {
namespace {

TEST_CASE("contiguous memory arrives whole, three versions in a row", "[move]") {
  Pair pair(100'000, TestOptions(), AnyPlaces());
  pair.RequireDelivered({{0, Run(100, 90'001)}}, {{0, Run(3, 90'001)}});
}

TEST_CASE("strided memory is gathered and scattered through the arena", "[move]") {
  Pair pair(64'000, TestOptions(), AnyPlaces());
  // Rows of 30 bytes become rows of 10: a reshard from row to column blocks.
  pair.RequireDelivered({{0, {8, 30, {{1000, 64}}}}}, {{0, {0, 10, {{3000, 21}}}}});
}

TEST_CASE("each side decides for itself whether memory is contiguous", "[move]") {
  Pair pair(64'000, TestOptions(), AnyPlaces());
  SECTION("strided to contiguous") {
    pair.RequireDelivered({{0, {8, 30, {{1000, 64}}}}}, {{0, Run(5, 30'000)}});
  }
  SECTION("contiguous to strided") {
    pair.RequireDelivered({{0, Run(5, 30'000)}}, {{0, {8, 30, {{1000, 64}}}}});
  }
  SECTION("long rows at a distance, cut inside a row, need no slot") {
    pair.RequireDelivered({{0, {0, 10'000, {{3, 20'000}}}}}, {{0, {1, 10'000, {{3, 20'000}}}}});
  }
}

TEST_CASE("one run of the host's memory moves directly, of a device's through slots", "[move]") {
  ExecutorOptions options = TestOptions();
  options.verify = false;  // else it would be read for its checksum
  const Places places = AnyPlaces();
  Pair pair(64'000, options, places);
  const Blocks run{{0, Run(100, 50'000)}};
  pair.RequireDelivered(run, run);
  const std::uint64_t moved = 3 * 50'000;
  REQUIRE(pair.t.device_copies.copied_bytes() == (places.source == Where::kDevice ? moved : 0));
  REQUIRE(pair.r.device_copies.copied_bytes() == (places.target == Where::kDevice ? moved : 0));
  REQUIRE(pair.t.copies.jobs() + pair.r.copies.jobs() == 0);
}

TEST_CASE("a stream may have buffers of the host and of a device", "[move]") {
  Pair pair(64'000);
  const std::span<std::byte> source = pair.t.AddMemory(kOther, 64'000, Where::kDevice);
  const std::span<std::byte> target = pair.r.AddMemory(kOther, 64'000, Where::kDevice);
  std::mt19937_64 rng = TestRng(1);
  FillRandom(rng, source);
  // Each buffer goes to the other kind, and a tied part of the host's back to the host.
  const Blocks from{{0, Run(0, 20'000)}, {1, {0, 10, {{1000, 20}}}}};
  const Blocks to{{1, Run(0, 20'000)}, {0, Run(0, 10'000)}};
  const std::vector<TiedBlock> tied{{0, {0, Run(30'000, 20'000)}}};
  std::vector<NodeWork> all = pair.Work(1, from, to, tied);
  for (BoundStream* bound : {&all[0].work.out[0].source, &all[1].work.in[0].destination}) {
    bound->regions = {kRegion, kOther};
    bound->offsets = {0, 0};
  }
  Deliver(pair.world, all);
  REQUIRE(std::equal(target.begin(), target.begin() + 20'000, pair.source.begin()));
  REQUIRE(std::equal(target.begin(), target.begin() + 20'000, pair.target.begin() + 30'000));
  for (std::size_t i = 0; i < 10'000; ++i) {
    REQUIRE(pair.target[i] == source[i / 10 * 20 + i % 10]);
  }
}

TEST_CASE("tied tensors get every byte of the first landing", "[move][field][case-33]") {
  Pair pair(64'000, TestOptions(), AnyPlaces());
  SECTION("beside a contiguous landing") {
    pair.RequireDelivered({{0, Run(0, 20'000)}}, {{0, Run(0, 20'000)}},
                          {{100, {0, {30'000, 10, {{1500, 20}}}}}});
  }
  SECTION("beside a strided one") {
    pair.RequireDelivered({{0, Run(0, 20'000)}}, {{0, {0, 10, {{2000, 15}}}}},
                          {{0, {0, Run(40'000, 20'000)}}, {5'000, {0, Run(31'000, 5'000)}}});
  }
}

TEST_CASE("an arena with fewer slots than chunks delivers all the same", "[move]") {
  ExecutorOptions options = TestOptions();
  options.arena_bytes = 2 * kTestChunk;  // one slot each way
  Pair pair(200'000, options, AnyPlaces());
  pair.RequireDelivered({{0, {0, 30, {{4000, 50}}}}}, {{0, {0, 40, {{3000, 60}}}}});
}

TEST_CASE("two nodes that send to each other never wait for each other's slots", "[move]") {
  ExecutorOptions options = TestOptions();
  options.arena_bytes = 2 * kTestChunk;
  options.chunks_in_flight = 8;
  const Places places = AnyPlaces();
  MoveWorld world;
  std::array<MoveNode*, 2> nodes{&world.Add("a", options), &world.Add("b", options)};
  const ByteBlock rows{0, 30, {{3000, 50}}};
  std::vector<NodeWork> all;
  std::array<std::span<std::byte>, 2> sources;
  std::array<std::span<std::byte>, 2> targets;
  for (std::size_t i = 0; i < 2; ++i) {
    sources[i] = nodes[i]->AddMemory(kRegion, 150'000, places.source);
    targets[i] = nodes[i]->AddMemory(kOther, 150'000, places.target);
    std::fill(sources[i].begin(), sources[i].end(), std::byte(i + 1));
    std::fill(targets[i].begin(), targets[i].end(), kSentinel);
    MoveNode& peer = *nodes[1 - i];
    AttemptWork work = WorkOf(1);
    work.peers = {peer.Address()};
    const auto number = static_cast<std::uint32_t>(i);
    work.out.push_back(
        {number, peer.name, nodes[i]->Bind(MakeStream({{0, rows}}, kTestChunk), kRegion)});
    work.in.push_back(
        {1 - number, peer.name, nodes[i]->Bind(MakeStream({{0, rows}}, kTestChunk), kOther)});
    all.push_back({nodes[i], work});
  }
  Deliver(world, all);
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<std::byte> image(150'000, kSentinel);
    for (const std::uint64_t address : AddressesOf(rows)) image[address] = std::byte(2 - i);
    REQUIRE(std::equal(targets[i].begin(), targets[i].end(), image.begin()));
  }
}

TEST_CASE("what has both ends here is copied and never sent", "[move]") {
  const Places places = AnyPlaces();
  Pair pair(64'000, TestOptions(), places);
  const std::span<std::byte> target = pair.t.AddMemory(kOther, 64'000, places.target);
  std::fill(target.begin(), target.end(), kSentinel);
  const Blocks from{{0, {8, 30, {{1000, 64}}}}};
  const Blocks to{{0, {0, 10, {{2500, 15}}}}, {0, Run(40'000, 5'000)}};
  const std::vector<TiedBlock> tied{{500, {0, {50'000, 7, {{100, 11}}}}}};
  AttemptWork work = WorkOf(1);
  work.copies.push_back({pair.t.Bind(MakeStream(from, kTestChunk), kRegion),
                         pair.t.Bind(MakeStream(to, tied, kTestChunk), kOther)});
  Deliver(pair.world, {{&pair.t, work}});
  const std::vector<std::byte> image = pair.Expected(from, to, tied);
  REQUIRE(std::equal(target.begin(), target.end(), image.begin()));
  REQUIRE(pair.t.events.staged.front().second == BytesByPath{0, 0, 30'000});
  REQUIRE(pair.t.fabric->payloads() + pair.r.fabric->payloads() == 0);
}

TEST_CASE("a byte is copied once within a node, at most twice between nodes, or not at all",
          "[move][field][case-145]") {
  const Blocks rows{{0, {8, 30, {{1000, 64}}}}};
  const Blocks run{{0, Run(100, 30'000)}};
  Pair pair(64'000);
  SECTION("within a node, whatever lies where") {
    pair.t.AddMemory(kOther, 64'000);
    const Blocks from = GENERATE_REF(rows, run);
    const Blocks to = GENERATE_REF(rows, run);
    AttemptWork work = WorkOf(1);
    work.copies.push_back({pair.t.Bind(MakeStream(from, kTestChunk), kRegion),
                           pair.t.Bind(MakeStream(to, kTestChunk), kOther)});
    Deliver(pair.world, {{&pair.t, work}});
    REQUIRE(pair.t.copies.copied_bytes() == 30'000);
  }
  SECTION("between nodes: into a slot, and out of one") {
    Deliver(pair.world, pair.Work(1, rows, rows));
    REQUIRE(pair.t.copies.copied_bytes() == 30'000);
    REQUIRE(pair.r.copies.copied_bytes() == 30'000);
  }
  SECTION("between nodes, in one run at both: no slot, though it is summed") {
    Deliver(pair.world, pair.Work(1, run, run));
    REQUIRE(pair.t.copies.copied_bytes() + pair.r.copies.copied_bytes() == 0);
  }
}

TEST_CASE("work of 15000 separate segments is taken on, and begun, within 50 ms",
          "[move][field][case-142]") {
  constexpr std::uint64_t kSegments = 15'000;
  constexpr std::uint64_t kStride = 1024;
  Pair pair(kSegments * kStride);
  Blocks segments;
  for (std::uint64_t i = 0; i < kSegments; ++i)
    segments.push_back({0, Run(i * kStride, 64 + i % 7)});
  const std::vector<NodeWork> all = pair.Work(1, segments, segments);
  for (const NodeWork& one : all) {
    AttemptWork work = one.work;
    const auto start = std::chrono::steady_clock::now();
    one.node->executor->Prepare(std::move(work));
    REQUIRE(std::chrono::steady_clock::now() - start < Slack(std::chrono::milliseconds(50)));
  }
  pair.world.DriveUntil(
      [&] { return pair.t.events.prepared.size() + pair.r.events.prepared.size() == all.size(); });
  for (const NodeWork& one : all) {
    const auto start = std::chrono::steady_clock::now();
    one.node->executor->Go(one.work.attempt);
    REQUIRE(std::chrono::steady_clock::now() - start < Slack(std::chrono::milliseconds(50)));
  }
  pair.world.DriveUntil([&] { return pair.r.events.staged.size() == 1; });
}

TEST_CASE("staged tells the bytes that landed, and the counters whom they came from", "[move]") {
  Pair pair(64'000);
  Deliver(pair.world, pair.Work(1, {{0, Run(0, 50'000)}}, {{0, Run(0, 50'000)}}));
  REQUIRE(pair.r.events.staged.front().second == BytesByPath{50'000, 0, 0});
  REQUIRE(pair.t.events.staged.front().second == BytesByPath{});
  const MoverCounters sent = pair.t.executor->Counters();
  const MoverCounters received = pair.r.executor->Counters();
  REQUIRE(sent.lanes.size() == 1);
  REQUIRE(sent.lanes.front().peer_node == "r");
  REQUIRE(sent.lanes.front().fabric == "loopback");
  REQUIRE(sent.lanes.front().sent_bytes == 50'000);
  REQUIRE(received.lanes.front().peer_node == "t");
  REQUIRE(received.lanes.front().received_bytes == 50'000);
  REQUIRE(received.refused_chunks + received.late_chunks == 0);
}

TEST_CASE("each phase is measured for the worker whose chunks were in it", "[move]") {
  Pair pair(64'000);
  const std::uint32_t other = StreamNumber(5, 6);
  std::vector<NodeWork> all = pair.Work(1, {{0, Run(0, 30'000)}}, {{0, {0, 10, {{3000, 15}}}}});
  pair.t.AddMemory(kOther, 64'000);
  AttemptWork& sends = all.at(0).work;
  sends.copies.push_back({pair.t.Bind(MakeStream({{0, Run(0, 100)}}, kTestChunk), kRegion),
                          pair.t.Bind(MakeStream({{0, Run(0, 100)}}, kTestChunk), kOther), other});
  Deliver(pair.world, all);

  REQUIRE(pair.t.events.measured.size() == 2);  // when it is staged, and in the end
  const AttemptTimes sent = pair.t.events.measured.back().second;
  const MoveTimes source = sent.sources.at(SourceRank(kStream));
  CHECK(source.pack_seconds > 0);
  CHECK(source.wire_seconds > 0);
  CHECK(source.scatter_seconds + source.copy_seconds == 0);
  CHECK(sent.sources.at(5).copy_seconds > 0);
  CHECK(sent.sources.at(5).wire_seconds == 0);
  CHECK(sent.destinations.at(6).copy_seconds == sent.sources.at(5).copy_seconds);

  const AttemptTimes received = pair.r.events.measured.front().second;
  const MoveTimes target = received.destinations.at(DestinationRank(kStream));
  CHECK(received.sources.empty());
  CHECK(target.wire_seconds > 0);
  CHECK(target.scatter_seconds > 0);
  CHECK(target.pack_seconds + target.copy_seconds == 0);
}

TEST_CASE("a chunk that comes before our own Go waits for it", "[move]") {
  Pair pair(64'000, TestOptions(), AnyPlaces());
  const bool direct = GENERATE(true, false);
  const Blocks from{{0, Run(0, 50'000)}};
  const Blocks to{{0, direct ? Run(0, 50'000) : ByteBlock{0, 10, {{5000, 12}}}}};
  const std::vector<NodeWork> all = pair.Work(1, from, to);
  PrepareAll(pair.world, all);
  pair.t.executor->Go(AttemptId(1));
  pair.world.DriveUntilQuiet();
  // A window of chunks is announced; not a byte has landed.
  REQUIRE(pair.r.fabric->payloads() == 4);
  REQUIRE(std::all_of(pair.target.begin(), pair.target.end(),
                      [](std::byte byte) { return byte == kSentinel; }));
  pair.r.executor->Go(AttemptId(1));
  AwaitStaged(pair.world, all);
  const std::vector<std::byte> image = pair.Expected(from, to);
  REQUIRE(std::equal(pair.target.begin(), pair.target.end(), image.begin()));
}

TEST_CASE("an attempt that lands nothing here is staged with Go", "[move]") {
  MoveWorld world;
  MoveNode& node = world.Add("n");
  Deliver(world, {{&node, WorkOf(1)}});
  REQUIRE(node.events.staged.front().second == BytesByPath{});
}

TEST_CASE("preparing an attempt that is known repeats the answer only", "[move]") {
  Pair pair(64'000);
  const std::vector<NodeWork> all = pair.Work(1, {{0, Run(0, 5'000)}}, {{0, Run(0, 5'000)}});
  PrepareAll(pair.world, all);
  pair.r.executor->Prepare(all[1].work);
  REQUIRE(pair.r.events.prepared.size() == 2);
  GoAll(all);
  AwaitStaged(pair.world, all);
  FinishAll(pair.world, all);
  REQUIRE(pair.r.events.ended.size() == 1);
}

TEST_CASE("lanes are kept between attempts of a group and not shared with others", "[move]") {
  Pair pair(64'000);
  const Blocks blocks{{0, Run(0, 20'000)}};
  for (std::uint64_t version = 1; version <= 3; ++version) {
    Deliver(pair.world, pair.Work(version, blocks, blocks));
  }
  REQUIRE(pair.t.fabric->connects() == 1);
  std::vector<NodeWork> other = pair.Work(4, blocks, blocks);
  for (NodeWork& each : other) each.work.group = "engine1";
  Deliver(pair.world, other);
  REQUIRE(pair.t.fabric->connects() == 2);
  Deliver(pair.world, pair.Work(5, blocks, blocks));
  REQUIRE(pair.t.fabric->connects() == 2);
}

TEST_CASE("lanes that nobody wants any more are closed, the others stay", "[move]") {
  Timers::Clock::time_point now{};
  ExecutorOptions options = TestOptions();
  options.now = [&now] { return now; };
  Pair pair(64'000, options);
  const Blocks blocks{{0, Run(0, 20'000)}};
  const auto of_group = [&](std::uint64_t attempt, const std::string& group) {
    std::vector<NodeWork> all = pair.Work(attempt, blocks, blocks);
    for (NodeWork& each : all) each.work.group = group;
    return all;
  };
  REQUIRE_FALSE(pair.t.executor->lanes_idle_until().has_value());
  Deliver(pair.world, of_group(1, "gone"));
  const std::vector<NodeWork> in_use = of_group(2, "long");
  PrepareAll(pair.world, in_use);
  now += std::chrono::seconds(20);
  Deliver(pair.world, of_group(3, "stays"));
  REQUIRE(pair.t.executor->lanes_idle_until() ==
          Timers::Clock::time_point{} + LaneTable::kIdleTime);
  now += std::chrono::seconds(10);
  pair.t.executor->CloseIdleLanes();
  REQUIRE(pair.t.executor->lanes_idle_until() == now + std::chrono::seconds(20));
  pair.world.DriveUntilQuiet();

  Deliver(pair.world, of_group(4, "stays"));
  REQUIRE(pair.t.fabric->connects() == 3);
  pair.Reset();
  GoAll(in_use);
  AwaitStaged(pair.world, in_use);
  FinishAll(pair.world, in_use);
  REQUIRE(std::equal(pair.target.begin(), pair.target.begin() + 20'000, pair.source.begin()));
  Deliver(pair.world, of_group(5, "gone"));
  REQUIRE(pair.t.fabric->connects() == 4);
}

TEST_CASE("groups that come and go leave no descriptors behind, at either end", "[move][ucx]") {
  Timers::Clock::time_point now{};
  ExecutorOptions options = TestOptions();
  options.now = [&now] { return now; };
  Pair pair(8'000, options, {}, "tcp");
  const Blocks blocks{{0, Run(0, 100)}};
  const auto deliver = [&](std::uint64_t attempt) {
    std::vector<NodeWork> all = pair.Work(attempt, blocks, blocks);
    for (NodeWork& each : all) each.work.group = "engine" + std::to_string(attempt);
    Deliver(pair.world, all);
  };
  const std::ptrdiff_t none = OpenDescriptors();
  deliver(1);
  const std::ptrdiff_t one_lane = OpenDescriptors() - none;
  REQUIRE(one_lane > 0);
  const auto most = static_cast<std::ptrdiff_t>(LaneTable::kMaxIdle);
  for (std::uint64_t attempt = 2; attempt <= LaneTable::kMaxIdle + 10; ++attempt) deliver(attempt);
  // The end of a lane comes to its other end in its own time.
  CAPTURE(none, one_lane);
  pair.world.DriveUntil([&] { return OpenDescriptors() <= none + most * one_lane; });
  now += LaneTable::kIdleTime;
  pair.t.executor->CloseIdleLanes();
  pair.world.DriveUntil([&] { return OpenDescriptors() <= none; });
  deliver(1000);
}

TEST_CASE("two attempts at once have a lane each", "[move]") {
  Pair pair(64'000);
  const Blocks first{{0, Run(0, 20'000)}};
  const Blocks second{{0, Run(30'000, 20'000)}};
  std::vector<NodeWork> all = pair.Work(1, first, first);
  for (NodeWork& each : pair.Work(2, second, second)) all.push_back(each);
  Deliver(pair.world, all);
  REQUIRE(pair.t.fabric->connects() == 2);
  REQUIRE(std::equal(pair.target.begin(), pair.target.begin() + 20'000, pair.source.begin()));
}

TEST_CASE("weights that look like a completion flag are weights", "[move][field][case-88]") {
  Pair pair(10'000);
  constexpr std::array<std::array<std::uint8_t, 4>, 2> kStarts{
      {{0xAB, 0xDC, 0xEF, 0x88}, {0, 0, 0, 0}}};
  const Blocks blocks{{0, Run(0, 10'000)}};
  for (std::uint64_t round = 0; round < 100; ++round) {
    pair.Reset();
    std::memcpy(pair.source.data(), kStarts[round % 2].data(), 4);
    Deliver(pair.world, pair.Work(round + 1, blocks, blocks));
    REQUIRE(std::equal(pair.target.begin(), pair.target.end(), pair.source.begin()));
  }
}

TEST_CASE("integrity may be off on both ends", "[move]") {
  ExecutorOptions options = TestOptions();
  options.verify = false;
  Pair pair(64'000, options);
  SECTION("packed") {
    pair.RequireDelivered({{0, Run(5, 30'000)}}, {{0, {8, 30, {{1000, 64}}}}});
  }
  SECTION("in place") {
    pair.RequireDelivered({{0, Run(5, 30'000)}}, {{0, Run(8, 30'000)}});
  }
}

TEST_CASE("with integrity on every byte is summed at both ends, with it off none", "[move]") {
  ExecutorOptions options = TestOptions();
  options.verify = GENERATE(true, false);
  Pair pair(64'000, options, AnyPlaces());
  const Blocks run{{0, Run(5, 30'000)}};
  const Blocks rows{{0, {8, 30, {{1000, 64}}}}};
  const Blocks& to = GENERATE_REF(run, rows);
  Deliver(pair.world, pair.Work(1, run, to));
  for (const MoveNode* node : {&pair.t, &pair.r}) {
    REQUIRE(node->copies.summed_bytes() + node->device_copies.summed_bytes() ==
            (options.verify ? 30'000 : 0));
  }
}

TEST_CASE("with integrity off a byte that flips on its way is not seen", "[move]") {
  ExecutorOptions options = TestOptions();
  options.verify = false;
  Pair pair(64'000, options, AnyPlaces());
  const Blocks run{{0, Run(0, 3 * kTestChunk)}};
  pair.r.fabric->Inject({{1}, {}});
  Deliver(pair.world, pair.Work(1, run, run));
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < 3 * kTestChunk; ++i) {
    if (pair.target[i] != pair.source[i]) wrong.push_back(i);
  }
  REQUIRE(wrong == std::vector<std::size_t>{kTestChunk + kTestChunk / 2});
}

TEST_CASE("an arena without two slots is refused", "[move]") {
  LoopbackNetwork network;
  RegionTable regions;
  RecordedEvents events;
  const auto fabric = LoopbackFabric::Create(network, regions).value();
  const auto copies = CopyPool::Create(0).value();
  ExecutorOptions options = TestOptions();
  options.arena_bytes = 2 * options.chunk_bytes - 1;
  REQUIRE(Executor::Create({*fabric, regions, Copiers(*copies), events}, options).status().code() ==
          absl::StatusCode::kInvalidArgument);
}

/// A random delivery between some nodes, and the image that each one's memory must have after it.
class RandomDelivery {
 public:
  explicit RandomDelivery(std::mt19937_64& rng) : rng_(rng) {
    const std::size_t count = Draw(rng, 1, 4);
    std::vector<std::uint64_t> source_ends(count);
    std::vector<std::uint64_t> target_ends(count);
    for (std::uint64_t s = Draw(rng, 1, 8); s > 0; --s) {
      Stream stream{Draw(rng, 0, count - 1), Draw(rng, 0, count - 1), {}, {}};
      const std::uint64_t bytes = Draw(rng, 1, 20'000);
      stream.source = MakeRandomEnd(rng, bytes, source_ends[stream.from]);
      stream.target = MakeRandomEnd(rng, bytes, target_ends[stream.to]);
      streams_.push_back(std::move(stream));
    }
    ExecutorOptions options = TestOptions();
    options.arena_bytes = Draw(rng, 2, 12) * kTestChunk;
    options.chunks_in_flight = static_cast<int>(Draw(rng, 1, 6));
    for (std::size_t i = 0; i < count; ++i) {
      nodes_.push_back(&world_.Add("n" + std::to_string(i), options));
      sources_.push_back(nodes_[i]->AddMemory(kRegion, source_ends[i] + 50, DrawWhere(rng)));
      targets_.push_back(nodes_[i]->AddMemory(kOther, target_ends[i] + 50, DrawWhere(rng)));
    }
  }

  void Run(std::uint64_t version) {
    std::vector<NodeWork> all;
    images_.clear();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      FillRandom(rng_, sources_[i]);
      std::fill(targets_[i].begin(), targets_[i].end(), kSentinel);
      images_.emplace_back(targets_[i].begin(), targets_[i].end());
      all.push_back({nodes_[i], WorkOf(version)});
      for (const MoveNode* node : nodes_) all[i].work.peers.push_back(node->Address());
    }
    for (std::uint32_t s = 0; s < streams_.size(); ++s) AddStream(s, all);
    Deliver(world_, all);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      REQUIRE(std::equal(targets_[i].begin(), targets_[i].end(), images_[i].begin()));
    }
  }

 private:
  struct Stream {
    std::size_t from = 0;
    std::size_t to = 0;
    RandomEnd source;
    RandomEnd target;
  };

  void AddStream(std::uint32_t number, std::vector<NodeWork>& all) {
    const auto& [from, to, source, target] = streams_[number];
    const BoundStream out = nodes_[from]->Bind(MakeStream(source.blocks, kTestChunk), kRegion);
    const BoundStream in = nodes_[to]->Bind(MakeStream(target.blocks, kTestChunk), kOther);
    if (from == to) {
      all[from].work.copies.push_back({out, in});
    } else {
      all[from].work.out.push_back({number, nodes_[to]->name, out});
      all[to].work.in.push_back({number, nodes_[from]->name, in});
    }
    std::vector<std::byte> packed;
    for (const BufferBlock& at : source.blocks) {
      for (const std::uint64_t byte : AddressesOf(at.block)) packed.push_back(sources_[from][byte]);
    }
    std::size_t next = 0;
    for (const BufferBlock& at : target.blocks) {
      for (const std::uint64_t byte : AddressesOf(at.block)) images_[to][byte] = packed[next++];
    }
  }

  std::mt19937_64& rng_;
  MoveWorld world_;
  std::vector<MoveNode*> nodes_;
  std::vector<std::span<std::byte>> sources_;
  std::vector<std::span<std::byte>> targets_;
  std::vector<Stream> streams_;
  std::vector<std::vector<std::byte>> images_;
};

TEST_CASE("any streams between any nodes put every byte in its place", "[move][property]") {
  const int round = GENERATE(range(0, 25));
  INFO("WB_TEST_SEED=" << RunSeed() << " round " << round);
  std::mt19937_64 rng = TestRng(round);
  RandomDelivery delivery(rng);
  for (std::uint64_t version = 1; version <= 3; ++version) delivery.Run(version);
}

}  // namespace
}  // namespace wb::test
