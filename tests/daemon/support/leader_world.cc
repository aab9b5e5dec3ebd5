#include "tests/daemon/support/leader_world.h"

#include <spdlog/spdlog.h>

#include "tests/daemon/support/control_jobs.h"
#include "tests/support/catch.h"

namespace wb::test {

LeaderWorld::LeaderWorld(const LeaderOptions& options, Term term) {
  spdlog::set_level(spdlog::level::off);
  leader_ =
      std::make_unique<Leader>(LeaderParts{timers, *this, work}, term, Incarnation(70), options);
}

PeerId LeaderWorld::Attach(const std::string& node, std::uint64_t incarnation) {
  const PeerId peer(next_peer_++);
  manners[peer] = Manners{};
  Say(peer, ClusterHello{node, Incarnation(incarnation), "address of " + node, "tcp", "host", 1});
  return peer;
}

absl::Status LeaderWorld::Join(PeerId peer,
                               const SessionId& session,
                               const Registration& registration,
                               int world_size,
                               const HeldBefore& held,
                               std::vector<GroupCommit> commits) {
  RegisterWorker call;
  call.session = session;
  call.incarnation = joining;
  call.world_size = world_size;
  call.epoch = Epoch(3);
  call.held_version = held.version;
  call.memory = held.memory;
  call.attempt = held.attempt;
  call.commits = std::move(commits);
  call.registration = std::make_shared<const Registration>(registration);
  Say(peer, call);
  const std::vector<WorkerRegistered> answers = Take<WorkerRegistered>(peer);
  REQUIRE(answers.size() == 1);
  REQUIRE(answers.front().session == session);
  return answers.front().status;
}

void LeaderWorld::Send(PeerId peer, FromLeader message) {
  const Manners& does = manners[peer];
  std::optional<ToLeader> answer;
  if (const auto* prepare = std::get_if<PrepareAttempt>(&message); prepare && does.prepares) {
    answer = AttemptPrepared{prepare->attempt};
  } else if (const auto* go = std::get_if<GoAttempt>(&message); go && does.stages) {
    answer = AttemptStaged{go->attempt, {128, 0, 0}};
  } else if (const auto* commit = std::get_if<CommitAttempt>(&message); commit && does.commits) {
    answer = AttemptCommitted{commit->attempt};
  } else if (const auto* abort = std::get_if<AbortAttempt>(&message); abort && does.aborts) {
    answer = AttemptAborted{abort->attempt};
  }
  sent_[peer].push_back(std::move(message));
  if (answer.has_value()) Say(peer, *answer);
}

template <typename Finish>
std::optional<Finish> LeaderWorld::End(PeerId peer, const SessionId& session) {
  std::optional<Finish> found;
  std::vector<Finish> others;
  for (Finish& finish : Take<Finish>(peer)) {
    if (finish.session != session) {
      others.push_back(std::move(finish));
      continue;
    }
    REQUIRE_FALSE(found.has_value());
    found = std::move(finish);
  }
  for (Finish& other : others) sent_[peer].emplace_back(std::move(other));
  return found;
}

std::optional<FinishPublish> LeaderWorld::PublishEnd(PeerId peer, const SessionId& session) {
  return End<FinishPublish>(peer, session);
}

std::optional<FinishReceive> LeaderWorld::ReceiveEnd(PeerId peer, const SessionId& session) {
  return End<FinishReceive>(peer, session);
}

VersionSnapshot LeaderWorld::Newest() const {
  const std::vector<VersionSnapshot> versions = leader_->Versions("gqa", 1);
  REQUIRE(versions.size() == 1);
  return versions.front();
}

DeliverySnapshot LeaderWorld::NewestTo(const std::string& group) const {
  for (const DeliverySnapshot& delivery : Newest().deliveries) {
    if (delivery.group == group) return delivery;
  }
  FAIL("no delivery to " + group);
  return {};
}

PairOfNodes::PairOfNodes(LeaderWorld& leader_world)
    : world(leader_world), n0(world.Attach("n0")), n1(world.Attach("n1")) {
  for (int rank = 0; rank < 2; ++rank) {
    const std::string number = std::to_string(rank);
    REQUIRE(world.Join(n0, "t" + number, TrainerRank(rank, 2, "n0"), 2).ok());
    REQUIRE(world.Join(n1, "r" + number, RolloutRank("engine0", rank, 2, "n1"), 2).ok());
  }
}

void PairOfNodes::PublishAll(std::uint64_t version) {
  world.Publish(n0, "t0", version);
  world.Publish(n0, "t1", version);
}

void PairOfNodes::AcceptAll(std::uint64_t version) {
  world.Accept(n1, "r0", version);
  world.Accept(n1, "r1", version);
}

}  // namespace wb::test
