#include "tests/daemon/support/cluster_world.h"

#include <optional>
#include <variant>

#include <spdlog/spdlog.h>

#include "tests/support/catch.h"

namespace wb::test {
namespace {

// Nobody is given up while others hold a version in doubt: no two ranks may ever disagree.
const LeaderOptions kOptions{.rejoin_timeout = std::chrono::hours(1)};

}  // namespace

/// One daemon: its coordinator, and everything around it.
class ClusterWorld::Node final : public LeaderLink, public AttemptRunner, public SessionNotices {
 public:
  using Queue = std::deque<std::function<void()>>;

  Node(ClusterWorld& world, const std::string& node)
      : name(node),
        coordinator(
            world.timers, *this, CoordinatorOptions{.node = node, .incarnation = Incarnation(1)}),
        world_(world) {
    coordinator.SetRunner(this);
    coordinator.SetNotices(this);
  }

  std::string name;
  std::optional<PeerId> peer;
  Queue up;       // to the leader
  Queue down;     // to the coordinator
  Queue reports;  // of mover and clients
  Coordinator coordinator;

  void Send(ToLeader message) override {
    REQUIRE(peer.has_value());
    up.emplace_back([this, from = *peer, message = std::move(message)] {
      world_.leader_->OnMessage(from, message);
    });
  }
  void AddRegion(RegionId id, Region /*region*/) override { regions_.insert(id); }
  void RemoveRegion(RegionId id, std::function<void()> removed) override {
    REQUIRE(regions_.erase(id) == 1);
    removed();
  }
  void Prepare(AttemptWork work) override {
    const AttemptId id = work.attempt;
    REQUIRE(attempts_.insert(id).second);
    Report([this, id] { coordinator.OnPrepared(id); }, id);
  }
  void Go(AttemptId id) override {
    REQUIRE(attempts_.contains(id));
    Report([this, id] { coordinator.OnStaged(id, {1, 0, 0}); }, id);
  }
  void Abort(AttemptId id) override { End(id); }
  void Finish(AttemptId id) override { End(id); }
  void TakeSnapshot(SnapshotWork work) override {
    const bool fails = world_.Draw(100) < world_.chance_of_failure;
    reports.emplace_back([this, id = work.id, fails] {
      coordinator.OnSnapshot(
          id, fails ? absl::ResourceExhaustedError("drawn to fail") : absl::OkStatus());
    });
  }
  void DropSnapshot(SnapshotId /*snapshot*/) override {}
  void NotifyGo(const SessionId& /*session*/,
                Version /*version*/,
                std::function<void()> accepted) override {
    if (world_.Draw(100) >= world_.chance_of_lost_notice) reports.push_back(std::move(accepted));
  }
  void NotifyStaged(const SessionId& /*session*/,
                    Version /*version*/,
                    AttemptId /*attempt*/) override {}
  void NotifyOutcome(const SessionId& /*session*/,
                     Version /*version*/,
                     bool /*committed*/) override {}
  void NotifySnapshot(const SessionId& /*session*/,
                      Version /*version*/,
                      double /*seconds*/) override {}
  void CloseGone() override {}

 private:
  void Report(std::function<void()> fine, AttemptId id) {
    if (world_.Draw(100) < world_.chance_of_failure) {
      reports.emplace_back(
          [this, id] { coordinator.OnFailed(id, absl::DataLossError("drawn to fail")); });
    } else {
      reports.push_back(std::move(fine));
    }
  }
  void End(AttemptId id) {
    REQUIRE(attempts_.erase(id) == 1);  // ended once
    reports.emplace_back([this, id] { coordinator.OnEnded(id); });
  }

  ClusterWorld& world_;
  std::set<AttemptId> attempts_;
  std::set<RegionId> regions_;
};

ClusterWorld::ClusterWorld(std::mt19937_64& rng, const std::vector<std::string>& nodes)
    : rng_(rng) {
  spdlog::set_level(spdlog::level::off);
  leader_ = std::make_unique<Leader>(LeaderParts{timers, *this, *this}, Term(term_),
                                     Incarnation(term_), kOptions);
  for (const std::string& node : nodes) {
    nodes_[node] = std::make_unique<Node>(*this, node);
    Connect(node);
  }
}

ClusterWorld::~ClusterWorld() = default;

int ClusterWorld::Draw(int below) {
  return std::uniform_int_distribution<int>(0, below - 1)(rng_);
}

Coordinator& ClusterWorld::coordinator(const std::string& node) {
  return nodes_.at(node)->coordinator;
}

void ClusterWorld::Open(const std::string& node,
                        const SessionId& session,
                        const Registration& registration,
                        int world_size,
                        std::function<void(SessionOpened)> done) {
  SessionOpening opening;
  opening.session = session;
  opening.world_size = world_size;
  opening.epoch = Epoch(1);
  opening.registration = registration;
  for (const Buffer& buffer : registration.layout.buffers) {
    absl::StatusOr<Region> region = Region::AllocateArena(4096);
    REQUIRE(region.ok());
    opening.buffers.push_back({buffer.name, *std::move(region), 0});
    if (registration.layout.role == Role::kRollout) continue;
    if (!opening.snapshots.has_value()) opening.snapshots.emplace();
    opening.snapshots->push_back(Region::MapArena(buffer.bytes).value());
  }
  coordinator(node).OpenSession(std::move(opening), timers.Now() + std::chrono::seconds(5),
                                std::move(done));
}

bool ClusterWorld::Deliver() {
  std::vector<Node::Queue*> queues;
  for (Node::Queue* queue : {&works_, &made_}) {
    if (!queue->empty()) queues.push_back(queue);
  }
  for (const auto& [name, node] : nodes_) {
    for (Node::Queue* queue : {&node->up, &node->down, &node->reports}) {
      if (!queue->empty()) queues.push_back(queue);
    }
  }
  if (queues.empty()) return false;
  Node::Queue& queue = *queues[static_cast<std::size_t>(Draw(static_cast<int>(queues.size())))];
  const std::function<void()> next = std::move(queue.front());
  queue.pop_front();
  next();
  return true;
}

void ClusterWorld::Settle(std::chrono::milliseconds time) {
  for (std::chrono::milliseconds passed{0}; passed < time;
       passed += std::chrono::milliseconds(100)) {
    while (Deliver()) {
    }
    timers.Advance(std::chrono::milliseconds(100));
  }
}

void ClusterWorld::Cut(const std::string& name) {
  Node& node = *nodes_.at(name);
  if (!node.peer.has_value()) return;
  const PeerId old = *node.peer;
  node.peer.reset();
  node.up.clear();
  node.down.clear();
  node.coordinator.OnLeaderLost(absl::UnavailableError("cut"));
  leader_->OnPeerLost(old, absl::UnavailableError("cut"));
}

void ClusterWorld::ReplaceLeader() {
  leader_.reset();
  for (const auto& [name, node] : nodes_) {
    if (!node->peer.has_value()) continue;
    node->peer.reset();
    node->up.clear();
    node->down.clear();
    node->coordinator.OnLeaderLost(absl::UnavailableError("the leader was killed"));
  }
  ++term_;
  leader_ = std::make_unique<Leader>(LeaderParts{timers, *this, *this}, Term(term_),
                                     Incarnation(term_), kOptions);
}

void ClusterWorld::Connect(const std::string& name) {
  Node& node = *nodes_.at(name);
  if (node.peer.has_value()) return;
  node.peer = PeerId(next_peer_++);
  node.Send(ClusterHello{name, Incarnation(1), "address of " + name, "tcp", "host", 1});
  node.coordinator.OnLeaderConnected();
}

void ClusterWorld::Send(PeerId peer, FromLeader message) {
  if (const auto* commit = std::get_if<CommitAttempt>(&message); commit != nullptr) {
    committed_.insert(commit->attempt);
    REQUIRE_FALSE(aborted_.contains(commit->attempt));
  }
  if (const auto* abort = std::get_if<AbortAttempt>(&message); abort != nullptr) {
    aborted_.insert(abort->attempt);
    REQUIRE_FALSE(committed_.contains(abort->attempt));
  }
  for (const auto& [name, node] : nodes_) {
    if (node->peer != peer) continue;
    Node* const to = node.get();
    node->down.emplace_back(
        [to, message = std::move(message)] { to->coordinator.OnLeaderMessage(message); });
    return;
  }
}

void ClusterWorld::Close(PeerId /*peer*/, const absl::Status& status) {
  FAIL("the leader closed a stream: " << status.ToString());
}

}  // namespace wb::test
