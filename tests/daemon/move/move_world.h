#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/move/attempt_work.h"
#include "daemon/move/execute/executor.h"
#include "tests/support/fake_device.h"
#include "tests/support/faulty_fabric.h"
#include "tests/support/observed_copier.h"
#include "transport/loopback/loopback_fabric.h"
#include "transport/memory/region.h"

namespace wb::test {

constexpr std::byte kSentinel{0xA5};

/// Remembers what was told, in order of its coming.
class RecordedEvents final : public MoverEvents {
 public:
  void OnPrepared(AttemptId attempt) override { prepared.push_back(attempt); }
  void OnStaged(AttemptId attempt, const BytesByPath& bytes) override {
    staged.emplace_back(attempt, bytes);
  }
  void OnMeasured(AttemptId attempt, const AttemptTimes& times) override {
    measured.emplace_back(attempt, times);
  }
  void OnFailed(AttemptId attempt, const absl::Status& status) override {
    failed.emplace_back(attempt, status);
  }
  void OnEnded(AttemptId attempt) override { ended.push_back(attempt); }
  void OnSnapshot(SnapshotId snapshot, const absl::Status& status) override {
    snapshots.emplace_back(snapshot, status);
  }

  std::vector<AttemptId> prepared;
  std::vector<std::pair<AttemptId, BytesByPath>> staged;
  std::vector<std::pair<AttemptId, AttemptTimes>> measured;
  std::vector<std::pair<AttemptId, absl::Status>> failed;
  std::vector<AttemptId> ended;
  std::vector<std::pair<SnapshotId, absl::Status>> snapshots;
};

/// Small figures, so that a few KiB make many chunks and want more slots than there are.
inline constexpr std::uint64_t kTestChunk = 4096;
ExecutorOptions TestOptions();

/// Makes a fabric of a world.
using FabricMaker = std::function<std::unique_ptr<Fabric>(const RegionTable&)>;

/// Whose memory a region is.
enum class Where : std::uint8_t { kHost, kDevice };
inline Where DrawWhere(std::mt19937_64& rng) {
  return rng() % 2 == 0 ? Where::kHost : Where::kDevice;
}

/// A daemon's data plane, with one device.
struct MoveNode {
  MoveNode(const FabricMaker& make, const std::string& name, ExecutorOptions options);

  PeerAddress Address() const;
  /// Memory that stands for a worker's, as the test sees it and opened; it stays where it is.
  std::pair<std::span<std::byte>, Region> MakeMemory(std::uint64_t bytes, Where where);
  /// The same, given to the executor.
  std::span<std::byte> AddMemory(RegionId id, std::uint64_t bytes, Where where = Where::kHost);
  /// Binds a stream to one region that holds buffer 0.
  BoundStream Bind(LocalStream stream, RegionId region, std::uint64_t offset = 0) const;

  std::string name;
  Incarnation incarnation;
  // Destroyed bottom-up: the copiers' threads end before the memory goes.
  FakeDevice device;
  RegionTable regions;
  std::unique_ptr<FaultyFabric> fabric;
  ObservedCopier copies;
  ObservedCopier device_copies;
  RecordedEvents events;
  std::unique_ptr<Executor> executor;
};

/// Some nodes on one network, driven by the test's thread.
class MoveWorld {
 public:
  /// Over the loopback fabric, or over UCX: `transports` as UcxOptions has them.
  explicit MoveWorld(const std::string& transports = "loopback");
  MoveNode& Add(const std::string& name, ExecutorOptions options = TestOptions());
  /// Lets all nodes do what is due until `done`, or fails the test after ten seconds.
  void DriveUntil(const std::function<bool()>& done);
  /// Lets all nodes do what is due until nothing is, the copiers included.
  void DriveUntilQuiet();
  LoopbackNetwork& network() { return network_; }
  void Remove(MoveNode& node);

 private:
  bool ProgressAll();

  LoopbackNetwork network_;
  FabricMaker make_;
  std::vector<std::unique_ptr<MoveNode>> nodes_;
};

/// A node's part of an attempt.
struct NodeWork {
  MoveNode* node = nullptr;
  AttemptWork work;
};

/// The empty work of an attempt of job "job", group "engine0".
AttemptWork WorkOf(std::uint64_t attempt);

void PrepareAll(MoveWorld& world, const std::vector<NodeWork>& all);
void GoAll(const std::vector<NodeWork>& all);
void AwaitStaged(MoveWorld& world, const std::vector<NodeWork>& all);
void FinishAll(MoveWorld& world, const std::vector<NodeWork>& all);
/// All of these: from Prepare to OnEnded, without a failure anywhere.
void Deliver(MoveWorld& world, const std::vector<NodeWork>& all);

bool Has(const std::vector<AttemptId>& list, AttemptId attempt);
/// The failure that was reported, or OK.
absl::Status FailureOf(const MoveNode& node, AttemptId attempt);

}  // namespace wb::test
