#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/daemon/support/cluster_world.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/support/catch.h"
#include "tests/support/seed.h"

namespace wb {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ClusterWorld;

/// What became of one call.
struct Outcome {
  WorkerName name;
  Version version;
  std::optional<absl::Status> status;
};

/// A worker that calls again and again, and comes back when it dies.
class Driver {
 public:
  Driver(ClusterWorld& world, std::string node, Registration registration, int world_size)
      : world_(world),
        node_(std::move(node)),
        registration_(std::move(registration)),
        world_size_(world_size) {}

  const WorkerName& name() const { return registration_.layout.name; }
  bool trainer() const { return registration_.layout.role == Role::kTrainer; }
  bool ready() const { return joined_ && !busy_; }

  void Join() {
    session_ = name().ToString() + "#" + std::to_string(++lives_);
    busy_ = true;
    joined_ = false;
    world_.Open(node_, session_, registration_, world_size_,
                [this, life = lives_](const SessionOpened& opened) {
                  if (life != lives_) return;
                  busy_ = false;
                  joined_ = opened.status.ok();
                });
  }
  /// Joins when it has to, else publishes or receives `version`.
  void Act(Version version, std::vector<std::shared_ptr<Outcome>>& outcomes) {
    if (busy_) return;
    if (!joined_) {
      Join();
      return;
    }
    busy_ = true;
    auto outcome = std::make_shared<Outcome>(Outcome{name(), version, {}});
    outcomes.push_back(outcome);
    const auto deadline = world_.timers.Now() + milliseconds(500 + world_.Draw(20'000));
    const auto end = [this, outcome, life = lives_](const absl::Status& status) {
      REQUIRE_FALSE(outcome->status.has_value());
      outcome->status = status;
      if (life == lives_) busy_ = false;
    };
    if (trainer()) {
      const PublishCall call{{}, world_.Draw(2) == 0};
      world_.coordinator(node_).Publish(session_, version, call, deadline,
                                        [end](const PublishResult& r) { end(r.status); });
    } else {
      world_.coordinator(node_).Receive(session_, version, deadline,
                                        [end](const ReceiveResult& r) { end(r.status); });
    }
  }
  void Die() {
    if (joined_) world_.coordinator(node_).CloseSession(session_, "process ended");
    if (joined_) busy_ = joined_ = false;
  }

 private:
  ClusterWorld& world_;
  std::string node_;
  Registration registration_;
  int world_size_;
  int lives_ = 0;
  SessionId session_;
  bool joined_ = false;
  bool busy_ = false;
};

/// Two trainers (n0, n1), engine0 of two ranks (n1, n2), engine1 of one (n0).
struct Cluster {
  explicit Cluster(std::mt19937_64& rng) : world(rng, {"n0", "n1", "n2"}) {
    workers.emplace_back(world, "n0", test::TrainerRank(0, 2, "n0"), 2);
    workers.emplace_back(world, "n1", test::TrainerRank(1, 2, "n1"), 2);
    workers.emplace_back(world, "n1", test::RolloutRank("engine0", 0, 2, "n1"), 2);
    workers.emplace_back(world, "n2", test::RolloutRank("engine0", 1, 2, "n2"), 2);
    workers.emplace_back(world, "n0", test::RolloutRank("engine1", 0, 1, "n0"), 1);
    for (Driver& worker : workers) worker.Join();
    world.Settle(milliseconds(100));
    for (const Driver& worker : workers) REQUIRE(worker.ready());
  }
  /// The version that trainers publish next.
  Version Next() {
    Version newest;
    for (const VersionSnapshot& version : world.leader().Versions("gqa", 1)) {
      newest = version.version;
      if (version.state == "opening") return newest;
    }
    newest = std::max(newest, tried);  // by leaders that are gone
    return Version(newest.value() + 1);
  }
  void Act(std::size_t worker) {
    const std::vector<VersionSnapshot> newest = world.leader().Versions("gqa", 1);
    const bool offered = !newest.empty() && newest.front().state == "offered";
    const bool receives = !workers[worker].trainer();
    const Version version = offered && receives ? newest.front().version : Next();
    tried = std::max(tried, version);
    workers[worker].Act(version, outcomes);
  }

  ClusterWorld world;
  std::vector<Driver> workers;
  std::vector<std::shared_ptr<Outcome>> outcomes;
  Version tried;  // the newest
};

/// A worker may be unsure, or gone; it may not be told that a version failed which its group has.
bool AgreesWithCommit(const absl::Status& status) {
  return status.ok() || status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kCancelled;
}

/// What counts of each worker and version: OK if it ever heard so, for a rank may ask again for
/// what it has; else the last answer, for who gave up early may have come again.
std::vector<std::shared_ptr<Outcome>> DecisiveOutcomes(const Cluster& cluster) {
  std::map<std::pair<WorkerName, Version>, std::shared_ptr<Outcome>> last;
  for (const auto& outcome : cluster.outcomes) {
    REQUIRE(outcome->status.has_value());  // nothing hangs
    std::shared_ptr<Outcome>& kept = last[{outcome->name, outcome->version}];
    if (kept == nullptr || !kept->status->ok()) kept = outcome;
  }
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (const auto& [key, outcome] : last) outcomes.push_back(outcome);
  return outcomes;
}

void CheckOutcomes(const Cluster& cluster) {
  const std::vector<std::shared_ptr<Outcome>> outcomes = DecisiveOutcomes(cluster);
  std::map<std::pair<std::string, Version>, bool> committed;
  for (const auto& outcome : outcomes) {
    bool& known = committed[{outcome->name.group, outcome->version}];
    known = known || outcome->status->ok();
  }
  for (const auto& outcome : outcomes) {
    INFO(outcome->name.ToString() << " version " << outcome->version.value() << ": "
                                  << outcome->status->ToString());
    if (outcome->name.group == "policy") {
      if (!outcome->status->ok()) continue;
      // OK to a trainer: no engine was told of a failure.
      for (const auto& other : outcomes) {
        if (other->version != outcome->version || other->name.group == "policy") continue;
        INFO("and " << other->name.ToString() << ": " << other->status->ToString());
        const bool came_later = other->status->code() == absl::StatusCode::kFailedPrecondition ||
                                other->status->code() == absl::StatusCode::kDeadlineExceeded;
        REQUIRE((AgreesWithCommit(*other->status) || came_later));
      }
    } else if (committed.at({outcome->name.group, outcome->version})) {
      const bool came_later = outcome->status->code() == absl::StatusCode::kFailedPrecondition;
      REQUIRE((AgreesWithCommit(*outcome->status) || came_later));
    }
  }
}

TEST_CASE("a leader and its daemons move version after version", "[control][cluster]") {
  std::mt19937_64 rng = test::TestRng(0);
  INFO("WB_TEST_SEED=" << test::RunSeed());
  Cluster cluster(rng);
  for (std::uint64_t version = 1; version <= 20; ++version) {
    for (Driver& worker : cluster.workers) worker.Act(Version(version), cluster.outcomes);
    while (cluster.world.Deliver()) {
    }
  }
  REQUIRE(cluster.outcomes.size() == 100);
  for (const auto& outcome : cluster.outcomes) REQUIRE(outcome->status->ok());
  const std::vector<VersionSnapshot> versions = cluster.world.leader().Versions("gqa", 0);
  REQUIRE(versions.size() == 20);
  for (const VersionSnapshot& version : versions) REQUIRE(version.state == "released");
  REQUIRE(cluster.world.leader().stale_messages() == 0);
}

TEST_CASE("whatever dies, breaks or fails, every call ends and no two ranks disagree",
          "[control][cluster][property]") {
  const int round = GENERATE(range(0, 40));
  INFO("WB_TEST_SEED=" << test::RunSeed() << " round " << round);
  std::mt19937_64 rng = test::TestRng(round);
  Cluster cluster(rng);
  ClusterWorld& world = cluster.world;
  world.chance_of_failure = round % 4 == 0 ? 0 : 3;
  world.chance_of_lost_notice = round % 4 == 1 ? 0 : 2;
  const std::vector<std::string> nodes{"n0", "n1", "n2"};
  for (int step = 0; step < 4000; ++step) {
    const int drawn = world.Draw(1000);
    const auto node = static_cast<std::size_t>(world.Draw(3));
    const auto worker = static_cast<std::size_t>(world.Draw(5));
    if (drawn < 700) {
      world.Deliver();
    } else if (drawn < 960) {
      cluster.Act(worker);
    } else if (drawn < 980) {
      world.timers.Advance(milliseconds(world.Draw(1500)));
    } else if (drawn < 992) {
      world.Connect(nodes[node]);
    } else if (drawn < 995) {
      cluster.workers[worker].Die();
    } else if (drawn < 996) {
      world.ReplaceLeader();
    } else if (round % 3 != 0) {
      world.Cut(nodes[node]);
    }
  }
  for (const std::string& node : nodes) world.Connect(node);
  world.Settle(seconds(40));
  CheckOutcomes(cluster);

  // And the next version succeeds as if nothing had been.
  world.chance_of_failure = world.chance_of_lost_notice = 0;
  cluster.outcomes.clear();
  for (int attempt = 0; attempt < 3; ++attempt) {
    for (Driver& worker : cluster.workers) {
      if (!worker.ready()) worker.Act(Version(), cluster.outcomes);
    }
    world.Settle(seconds(6));
  }
  for (const Driver& worker : cluster.workers) REQUIRE(worker.ready());
  const Version next = cluster.Next();
  for (Driver& worker : cluster.workers) worker.Act(next, cluster.outcomes);
  while (world.Deliver()) {
  }
  for (const auto& outcome : cluster.outcomes) {
    INFO(outcome->name.ToString());
    REQUIRE(outcome->status.has_value());
    INFO(outcome->status->ToString());
    REQUIRE(outcome->status->ok());
  }
  world.timers.Advance(std::chrono::hours(1));  // what nobody can tell any more
  REQUIRE(world.leader().Waits().empty());
}

}  // namespace
}  // namespace wb
