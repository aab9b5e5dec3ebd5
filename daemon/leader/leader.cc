#include "daemon/leader/leader.h"

#include <limits>
#include <type_traits>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>

#include "daemon/leader/publications.h"
#include "daemon/leader/registrations.h"
#include "daemon/leader/snapshots.h"
#include "daemon/leader/state.h"

namespace wb {

struct Leader::State {
  State(const LeaderParts& parts, const LeaderOptions& options)
      : values(parts, options), publications(values), registrations(values, publications) {}

  void Dispatch(PeerId id, ToLeader& message);

  // What daemons say once they have said hello.
  void On(Peer& peer, RegisterWorker& call) { registrations.Register(peer, std::move(call)); }
  void On(Peer& peer, const UnregisterWorker& call) { registrations.Unregister(peer, call); }
  void On(Peer& peer, const PublishVersion& call) { publications.Publish(call, peer.hello.node); }
  void On(Peer& peer, const AcceptVersion& call) { publications.Accept(call, peer.hello.node); }
  void On(Peer& peer, const GiveUpVersion& call) { publications.GiveUp(call, peer.hello.node); }
  void On(Peer& peer, const AttemptPrepared& fact) {
    publications.deliveries().OnPrepared(peer.hello.node, fact.attempt);
  }
  void On(Peer& peer, const AttemptStaged& fact) {
    publications.deliveries().OnStaged(peer.hello.node, fact.attempt, fact.bytes);
  }
  void On(Peer& peer, const AttemptFailed& fact) {
    publications.deliveries().OnFailed(peer.hello.node, fact.attempt, fact.status);
  }
  void On(Peer& peer, const AttemptAborted& fact) {
    publications.deliveries().OnAborted(peer.hello.node, fact.attempt);
  }
  void On(Peer& peer, const AttemptCommitted& fact) {
    publications.deliveries().OnCommitted(peer.hello.node, fact.attempt);
  }
  void On(Peer& peer, const ClusterHello& /*again*/) {
    const PeerId id = peer.id;
    const absl::Status status = absl::InvalidArgumentError("a second hello on one stream");
    registrations.PeerLost(id, status);
    values.peers.Close(id, status);
  }
  void On(Peer& peer, const Heartbeat& /*answer*/) { registrations.OnHeartbeat(peer); }

  LeaderState values;
  Publications publications;
  Registrations registrations;
};

void Leader::State::Dispatch(PeerId id, ToLeader& message) {
  Peer* peer = values.peers.Find(id);
  if (peer != nullptr) {
    std::visit([&](auto& body) { On(*peer, body); }, message);
    return;
  }
  if (auto* hello = std::get_if<ClusterHello>(&message); hello != nullptr) {
    registrations.Hello(id, std::move(*hello));
    return;
  }
  // Of a stream that we have given up, or one that speaks before its hello.
  ++values.stale_messages;
  values.peers.Close(id, absl::FailedPreconditionError("the first message must be hello"));
}

Leader::Leader(const LeaderParts& parts,
               Term term,
               Incarnation incarnation,
               const LeaderOptions& options)
    : state_(std::make_unique<State>(parts, options)) {
  state_->values.term = term;
  state_->values.incarnation = incarnation;
}

Leader::~Leader() = default;

void Leader::OnMessage(PeerId peer, ToLeader message) {
  state_->values.turns.Run(
      [this, peer, message = std::move(message)]() mutable { state_->Dispatch(peer, message); });
}

void Leader::OnPeerLost(PeerId peer, const absl::Status& why) {
  state_->values.turns.Run([this, peer, why] { state_->registrations.PeerLost(peer, why); });
}

Term Leader::term() const {
  return state_->values.term;
}

std::uint64_t Leader::stale_messages() const {
  return state_->values.stale_messages;
}

std::vector<MemberSnapshot> Leader::Members(const std::string& job) const {
  std::vector<MemberSnapshot> all;
  for (const auto& [name, entry] : state_->values.jobs) {
    if (!job.empty() && name != job) continue;
    std::vector<MemberSnapshot> members = SnapshotMembers(entry);
    all.insert(all.end(), members.begin(), members.end());
  }
  return all;
}

std::vector<VersionSnapshot> Leader::Versions(const std::string& job, std::uint32_t last) const {
  const std::size_t most = last == 0 ? std::numeric_limits<std::size_t>::max() : last;
  std::vector<VersionSnapshot> all;
  for (const auto& [name, entry] : state_->values.jobs) {
    if (!job.empty() && name != job) continue;
    std::vector<VersionSnapshot> versions =
        SnapshotVersions(entry, most, state_->values.turns.Now());
    all.insert(all.end(), versions.begin(), versions.end());
  }
  return all;
}

RefusalsSnapshot Leader::Refused(const std::string& job, std::uint32_t limit) const {
  return state_->values.refused.List(job, limit);
}

std::vector<std::string> Leader::Waits() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : state_->values.jobs) {
    std::vector<std::string> waits = SnapshotWaits(entry, state_->values.turns.Now());
    all.insert(all.end(), waits.begin(), waits.end());
  }
  return all;
}

}  // namespace wb
