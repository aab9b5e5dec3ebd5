#include "tests/daemon/move/move_world.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/hash/hash.h"

#include "tests/support/catch.h"
#include "tests/support/time_slack.h"
#include "transport/copy/copy_pool.h"
#include "transport/ucx/ucx_fabric.h"

namespace wb::test {

ExecutorOptions TestOptions() {
  ExecutorOptions options;
  options.arena_bytes = 8 * kTestChunk;  // four slots each way
  options.chunk_bytes = kTestChunk;
  options.chunks_in_flight = 4;
  options.local_copies_at_once = 2;
  return options;
}

MoveNode::MoveNode(const FabricMaker& make, const std::string& node_name, ExecutorOptions options)
    : name(node_name),
      incarnation(absl::HashOf(node_name)),
      copies(CopyPool::Create(1).value()),
      device_copies(device.MakeCopier()) {
  options.node = name;
  options.incarnation = incarnation;
  fabric = std::make_unique<FaultyFabric>(make(regions), regions);
  Copiers copiers(copies);
  copiers.Add(device.id(), device_copies);
  executor = Executor::Create({*fabric, regions, copiers, events}, options).value();
}

PeerAddress MoveNode::Address() const {
  return {name, incarnation, fabric->address()};
}

std::pair<std::span<std::byte>, Region> MoveNode::MakeMemory(std::uint64_t bytes, Where where) {
  if (where == Where::kDevice) {
    const std::span<std::byte> memory = device.Allocate(bytes);
    return {memory, device.Open(memory)};
  }
  Region region = Region::AllocateArena(bytes).value();
  const std::span<std::byte> memory = region.host_memory().value();
  return {memory, std::move(region)};
}

std::span<std::byte> MoveNode::AddMemory(RegionId id, std::uint64_t bytes, Where where) {
  auto [memory, region] = MakeMemory(bytes, where);
  executor->AddRegion(id, std::move(region));
  return memory;
}

BoundStream MoveNode::Bind(LocalStream stream, RegionId region, std::uint64_t offset) const {
  return {std::move(stream), {region}, {offset}};
}

MoveWorld::MoveWorld(const std::string& transports) {
  make_ = [this, transports](const RegionTable& regions) -> std::unique_ptr<Fabric> {
    if (transports == "loopback") return LoopbackFabric::Create(network_, regions).value();
    return UcxFabric::Create({.interface = "lo", .transports = transports}, regions).value();
  };
  spdlog::set_level(spdlog::level::off);  // a test fails on purpose, often
}

MoveNode& MoveWorld::Add(const std::string& name, ExecutorOptions options) {
  return *nodes_.emplace_back(std::make_unique<MoveNode>(make_, name, std::move(options)));
}

void MoveWorld::Remove(MoveNode& node) {
  std::erase_if(nodes_, [&node](const auto& each) { return each.get() == &node; });
}

bool MoveWorld::ProgressAll() {
  bool any = false;
  for (const auto& node : nodes_) any = node->executor->Progress() || any;
  return any;
}

void MoveWorld::DriveUntil(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + Slack(std::chrono::seconds(10));
  while (!done()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    if (!ProgressAll()) std::this_thread::yield();  // a copy thread has the rest
  }
}

void MoveWorld::DriveUntilQuiet() {
  const auto copying = [](const auto& node) {
    return node->copies.pending() + node->device_copies.pending() > 0;
  };
  const auto deadline = std::chrono::steady_clock::now() + Slack(std::chrono::seconds(10));
  while (ProgressAll() || std::any_of(nodes_.begin(), nodes_.end(), copying)) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
}

AttemptWork WorkOf(std::uint64_t attempt) {
  AttemptWork work;
  work.attempt = AttemptId(attempt);
  work.version = Version(attempt);
  work.job = "job";
  work.group = "engine0";
  return work;
}

bool Has(const std::vector<AttemptId>& list, AttemptId attempt) {
  return std::find(list.begin(), list.end(), attempt) != list.end();
}

absl::Status FailureOf(const MoveNode& node, AttemptId attempt) {
  for (const auto& [id, status] : node.events.failed) {
    if (id == attempt) return status;
  }
  return absl::OkStatus();
}

namespace {

bool IsStaged(const MoveNode& node, AttemptId attempt) {
  return std::any_of(node.events.staged.begin(), node.events.staged.end(),
                     [attempt](const auto& each) { return each.first == attempt; });
}

template <typename Predicate>
void AwaitAll(MoveWorld& world, const std::vector<NodeWork>& all, const Predicate& predicate) {
  world.DriveUntil([&all, &predicate] {
    for (const NodeWork& each : all) {
      const absl::Status failure = FailureOf(*each.node, each.work.attempt);
      INFO(each.node->name << ": " << failure.ToString());
      REQUIRE(failure.ok());
    }
    return std::all_of(all.begin(), all.end(), predicate);
  });
}

}  // namespace

void PrepareAll(MoveWorld& world, const std::vector<NodeWork>& all) {
  for (const NodeWork& each : all) each.node->executor->Prepare(each.work);
  AwaitAll(world, all,
           [](const NodeWork& each) { return Has(each.node->events.prepared, each.work.attempt); });
}

void GoAll(const std::vector<NodeWork>& all) {
  for (const NodeWork& each : all) each.node->executor->Go(each.work.attempt);
}

void AwaitStaged(MoveWorld& world, const std::vector<NodeWork>& all) {
  AwaitAll(world, all,
           [](const NodeWork& each) { return IsStaged(*each.node, each.work.attempt); });
}

void FinishAll(MoveWorld& world, const std::vector<NodeWork>& all) {
  for (const NodeWork& each : all) each.node->executor->Finish(each.work.attempt);
  AwaitAll(world, all,
           [](const NodeWork& each) { return Has(each.node->events.ended, each.work.attempt); });
}

void Deliver(MoveWorld& world, const std::vector<NodeWork>& all) {
  PrepareAll(world, all);
  GoAll(all);
  AwaitStaged(world, all);
  FinishAll(world, all);
}

}  // namespace wb::test
