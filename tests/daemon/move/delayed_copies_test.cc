#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/leader/leader.h"
#include "daemon/move/coordinator.h"
#include "tests/daemon/move/move_pair.h"
#include "tests/daemon/move/move_world.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/inline_work.h"
#include "tests/support/catch.h"
#include "tests/support/manual_timers.h"

namespace wb::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

/// Messages on their way.
using Queue = std::deque<std::function<void()>>;

/// A coordinator with its data plane. Its client takes every notice.
class Daemon final : public LeaderLink, public AttemptRunner, public SessionNotices {
 public:
  Daemon(MoveNode& on, Timers& timers, Queue& queue, std::function<void(ToLeader)> to_leader)
      : node(on),
        coordinator(
            timers, *this, {.node = on.name, .incarnation = on.incarnation, .chunk_bytes = 64}),
        queue_(queue),
        to_leader_(std::move(to_leader)) {
    coordinator.SetRunner(this);
    coordinator.SetNotices(this);
    Send(ClusterHello{node.name, node.incarnation, node.Address().data_address, "loopback", "", 1});
    coordinator.OnLeaderConnected();
  }

  MoveNode& node;
  Coordinator coordinator;
  std::function<void(Version)> on_snapshot;  // what a client does then

  /// Tells the coordinator what the data plane has told.
  void ForwardEvents() {
    const RecordedEvents told = std::exchange(node.events, {});
    for (const AttemptId id : told.prepared) coordinator.OnPrepared(id);
    for (const auto& [id, times] : told.measured) coordinator.OnMeasured(id, times);
    for (const auto& [id, bytes] : told.staged) coordinator.OnStaged(id, bytes);
    for (const auto& [id, status] : told.failed) coordinator.OnFailed(id, status);
    for (const AttemptId id : told.ended) coordinator.OnEnded(id);
    for (const auto& [id, status] : told.snapshots) coordinator.OnSnapshot(id, status);
  }

  void Send(ToLeader message) override {
    queue_.emplace_back([this, message = std::move(message)] { to_leader_(message); });
  }
  void AddRegion(RegionId id, Region region) override {
    node.executor->AddRegion(id, std::move(region));
  }
  void RemoveRegion(RegionId id, std::function<void()> removed) override {
    node.executor->RemoveRegion(id, std::move(removed));
  }
  void Prepare(AttemptWork work) override { node.executor->Prepare(std::move(work)); }
  void Go(AttemptId id) override { node.executor->Go(id); }
  void Abort(AttemptId id) override { node.executor->Abort(id); }
  void Finish(AttemptId id) override { node.executor->Finish(id); }
  void TakeSnapshot(SnapshotWork work) override { node.executor->TakeSnapshot(work); }
  void DropSnapshot(SnapshotId snapshot) override { node.executor->DropSnapshot(snapshot); }
  void NotifyGo(const SessionId& /*session*/,
                Version /*version*/,
                std::function<void()> accepted) override {
    queue_.push_back(std::move(accepted));
  }
  void NotifyStaged(const SessionId& /*session*/,
                    Version /*version*/,
                    AttemptId /*attempt*/) override {}
  void NotifyOutcome(const SessionId& /*session*/,
                     Version /*version*/,
                     bool /*committed*/) override {}
  void NotifySnapshot(const SessionId& /*session*/, Version version, double /*seconds*/) override {
    if (on_snapshot) on_snapshot(version);
  }
  void CloseGone() override {}

 private:
  Queue& queue_;
  std::function<void(ToLeader)> to_leader_;
};

/// A leader and one or two whole daemons of a trainer and a rollout, each with its tensor in one
/// run of the host's memory or a device's.
class Deployment final : public PeerLinks {
 public:
  Deployment(Places places, bool one_node, milliseconds delay) {
    Daemon& t = AddDaemon("t", delay);
    Daemon& r = one_node ? t : AddDaemon("r", delay);
    source = Join(t, "trainer", TrainerRank(0, 1, t.node.name), places.source);
    target = Join(r, "rollout", RolloutRank("engine0", 0, 1, r.node.name), places.target);
  }

  std::span<std::byte> source;
  std::span<std::byte> target;

  /// What the trainer does when its snapshot is taken; it publishes one then.
  void OnSnapshot(std::function<void(Version)> then) {
    snapshot_ = true;
    daemons_.front()->on_snapshot = std::move(then);
  }
  /// Both call with version 1; what the test wants to do at the moment of their return.
  void Deliver(const std::function<void(const absl::Status&)>& published,
               const std::function<void(const absl::Status&)>& received) {
    int returned = 0;
    const auto deadline = timers_.Now() + std::chrono::seconds(10);
    daemons_.front()->coordinator.Publish("trainer", Version(1), {{}, snapshot_}, deadline,
                                          [&](const PublishResult& result) {
                                            published(result.status);
                                            ++returned;
                                          });
    daemons_.back()->coordinator.Receive("rollout", Version(1), deadline,
                                         [&](const ReceiveResult& result) {
                                           received(result.status);
                                           ++returned;
                                         });
    DriveUntil([&] { return returned == 2; });
  }

  // PeerLinks
  void Pack(PrepareAttempt& /*message*/) const override {}
  void Send(PeerId peer, FromLeader message) override {
    queue_.emplace_back([this, peer, message = std::move(message)] {
      daemons_[peer.value()]->coordinator.OnLeaderMessage(message);
    });
  }
  void Close(PeerId /*peer*/, const absl::Status& status) override { FAIL(status.ToString()); }

 private:
  Daemon& AddDaemon(const std::string& name, milliseconds delay) {
    MoveNode& node = world_.Add(name);
    node.device.SetDelay(delay);
    const PeerId peer(daemons_.size());
    return *daemons_.emplace_back(std::make_unique<Daemon>(
        node, timers_, queue_,
        [this, peer](ToLeader message) { leader_.OnMessage(peer, std::move(message)); }));
  }

  std::span<std::byte> Join(Daemon& daemon,
                            const SessionId& session,
                            Registration registration,
                            Where where) {
    const Buffer& buffer = registration.layout.buffers.front();
    SessionOpening opening;
    opening.session = session;
    opening.world_size = 1;
    opening.epoch = Epoch(1);
    auto [memory, region] = daemon.node.MakeMemory(buffer.bytes, where);
    opening.buffers.push_back({buffer.name, std::move(region), 0});
    if (registration.layout.role == Role::kTrainer) {
      opening.snapshots.emplace().push_back(Region::MapArena(buffer.bytes).value());
    }
    opening.registration = std::move(registration);
    std::optional<absl::Status> joined;
    daemon.coordinator.OpenSession(
        std::move(opening), timers_.Now() + std::chrono::seconds(10),
        [&joined](const SessionOpened& opened) { joined = opened.status; });
    DriveUntil([&joined] { return joined.has_value(); });
    REQUIRE(joined->ok());
    return memory;
  }

  void DriveUntil(const std::function<bool()>& done) {
    world_.DriveUntil([&] {
      while (!queue_.empty()) {
        const std::function<void()> next = std::move(queue_.front());
        queue_.pop_front();
        next();
      }
      for (const auto& daemon : daemons_) daemon->ForwardEvents();
      return done();
    });
  }

  bool snapshot_ = false;
  ManualTimers timers_;
  MoveWorld world_;
  Queue queue_;
  InlineWork work_;
  Leader leader_{{timers_, *this, work_}, Term(1), Incarnation(1), LeaderOptions{}};
  std::vector<std::unique_ptr<Daemon>> daemons_;
};

constexpr milliseconds kDelay{200};

void RequireLate(const absl::Status& status, Clock::time_point start) {
  INFO(status.ToString());
  REQUIRE(status.ok());
  REQUIRE(Clock::now() - start >= kDelay);
}

TEST_CASE("calls return when late copies are done, not queued, and memory is good at once",
          "[move][field][case-87]") {
  const auto [places, one_node] = GENERATE(std::pair{Places{Where::kDevice, Where::kHost}, false},
                                           std::pair{Places{Where::kHost, Where::kDevice}, false},
                                           std::pair{Places{Where::kDevice, Where::kDevice}, false},
                                           std::pair{Places{Where::kDevice, Where::kDevice}, true});
  Deployment deployment(places, one_node, kDelay);
  std::mt19937_64 rng = TestRng(0);
  FillRandom(rng, deployment.source);
  const Bytes version(deployment.source.begin(), deployment.source.end());
  std::fill(deployment.target.begin(), deployment.target.end(), kSentinel);

  const auto start = Clock::now();
  std::future<void> reuse;
  std::future<Bytes> consume;
  deployment.Deliver(
      [&](const absl::Status& published) {
        RequireLate(published, start);
        reuse = std::async(std::launch::async, [memory = deployment.source] {
          std::fill(memory.begin(), memory.end(), std::byte{0});
        });
      },
      [&](const absl::Status& received) {
        RequireLate(received, start);
        consume = std::async(std::launch::async, [memory = deployment.target] {
          return Bytes(memory.begin(), memory.end());
        });
      });
  reuse.get();
  REQUIRE(consume.get() == version);
  REQUIRE(std::equal(version.begin(), version.end(), deployment.target.begin()));
}

TEST_CASE("memory that is written as soon as its snapshot is taken changes nothing of the version",
          "[move][snapshot]") {
  const Places places = AnyPlaces();
  const bool one_node = GENERATE(false, true);
  Deployment deployment(places, one_node, milliseconds(20));
  std::mt19937_64 rng = TestRng(0);
  FillRandom(rng, deployment.source);
  const Bytes version(deployment.source.begin(), deployment.source.end());
  bool taken = false;
  deployment.OnSnapshot([&](Version of) {
    taken = of == Version(1);
    std::fill(deployment.source.begin(), deployment.source.end(), kSentinel);
  });
  const auto require = [&](const absl::Status& status) {
    INFO(status.ToString());
    REQUIRE(status.ok());
    REQUIRE(taken);
  };
  deployment.Deliver(require, require);
  REQUIRE(std::equal(version.begin(), version.end(), deployment.target.begin()));
}

}  // namespace
}  // namespace wb::test
