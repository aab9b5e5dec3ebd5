#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "daemon/leader/leader.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/daemon/support/inline_work.h"
#include "tests/support/manual_timers.h"

namespace wb::test {

/// What a daemon does of its own accord when the leader asks.
struct Manners {
  bool prepares = true;
  bool stages = true;
  bool commits = true;
  bool aborts = true;
};

/// A leader with daemons that are no more than their manners. What the leader sends is kept per
/// stream until a test takes it; answers come from inside Send, as a quick link's would.
class LeaderWorld final : public PeerLinks {
 public:
  explicit LeaderWorld(const LeaderOptions& options = {}, Term term = Term(7));

  ManualTimers timers;
  InlineWork work;
  std::map<PeerId, Manners> manners;
  std::map<PeerId, absl::Status> closed;
  Incarnation joining{5};  // of workers that join from here on

  Leader& leader() { return *leader_; }
  /// A stream that says hello for `node`.
  PeerId Attach(const std::string& node, std::uint64_t incarnation = 1);
  void Say(PeerId peer, ToLeader message) { leader_->OnMessage(peer, std::move(message)); }
  /// Registers and returns the leader's answer.
  absl::Status Join(PeerId peer,
                    const SessionId& session,
                    const Registration& registration,
                    int world_size,
                    const HeldBefore& held = {},
                    std::vector<GroupCommit> commits = {});
  void Publish(PeerId peer,
               const SessionId& session,
               std::uint64_t version,
               const std::set<std::string>& required_groups = {}) {
    Say(peer, PublishVersion{session, Version(version), {"", required_groups}});
  }
  void Accept(PeerId peer, const SessionId& session, std::uint64_t version) {
    Say(peer, AcceptVersion{session, Version(version)});
  }

  /// Takes all messages of one kind that were sent to `peer`.
  template <typename Message>
  std::vector<Message> Take(PeerId peer) {
    std::vector<Message> taken;
    std::vector<FromLeader> kept;
    for (FromLeader& message : sent_[peer]) {
      if (Message* found = std::get_if<Message>(&message); found != nullptr) {
        taken.push_back(std::move(*found));
      } else {
        kept.push_back(std::move(message));
      }
    }
    sent_[peer] = std::move(kept);
    return taken;
  }
  /// The one answer to a session's call; nothing while there is none. Fails on two.
  std::optional<FinishPublish> PublishEnd(PeerId peer, const SessionId& session);
  std::optional<FinishReceive> ReceiveEnd(PeerId peer, const SessionId& session);
  /// The newest version's snapshot, and one delivery of it.
  VersionSnapshot Newest() const;
  DeliverySnapshot NewestTo(const std::string& group) const;

  void Send(PeerId peer, FromLeader message) override;
  void Pack(PrepareAttempt& /*message*/) const override {}
  void Close(PeerId peer, const absl::Status& status) override { closed[peer] = status; }

 private:
  template <typename Finish>
  std::optional<Finish> End(PeerId peer, const SessionId& session);

  std::map<PeerId, std::vector<FromLeader>> sent_;
  std::uint64_t next_peer_ = 1;
  std::unique_ptr<Leader> leader_;
};

/// Two trainer ranks (sessions t0, t1) on n0 and engine0 with two ranks (sessions r0, r1) on n1.
struct PairOfNodes {
  explicit PairOfNodes(LeaderWorld& world);
  void PublishAll(std::uint64_t version);
  void AcceptAll(std::uint64_t version);

  LeaderWorld& world;
  PeerId n0;
  PeerId n1;
};

}  // namespace wb::test
