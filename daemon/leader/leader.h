#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/leader/background.h"
#include "daemon/state/cluster_messages.h"
#include "planner/base/strong_id.h"
#include "planner/model/ids.h"
#include "planner/model/refusal.h"
#include "transport/loop/timers.h"

namespace wb {

/// A daemon's stream to the leader. Never reused.
using PeerId = StrongId<struct PeerTag>;

/// How the leader answers daemons. Send never blocks.
class PeerLinks {
 public:
  virtual ~PeerLinks() = default;
  virtual void Send(PeerId peer, FromLeader message) = 0;
  /// Makes of a message's plan what goes out, so that Send has less to do. Thread-safe.
  virtual void Pack(PrepareAttempt& message) const = 0;
  /// Ends a stream with `status`, after what was sent to it before. The leader has forgotten the
  /// peer: OnPeerLost may or may not follow.
  virtual void Close(PeerId peer, const absl::Status& status) = 0;
};

/// What daemons' streams report; called on the leader's loop.
class PeerEvents {
 public:
  virtual ~PeerEvents() = default;
  /// The first message of a stream is ClusterHello.
  virtual void OnMessage(PeerId peer, ToLeader message) = 0;
  /// The stream has ended: its workers are gone.
  virtual void OnPeerLost(PeerId peer, const absl::Status& why) = 0;
};

struct LeaderOptions {
  std::chrono::milliseconds start_timeout{10'000};  // participants to register, accept, prepare
  std::chrono::milliseconds abort_timeout{5'000};   // daemons to confirm an abort
  /// For the ranks of a group to come back after a leader's death, before a version that some of
  /// them hold in doubt counts as failed.
  std::chrono::milliseconds rejoin_timeout{10'000};
  std::uint32_t min_groups = 1;                    // a version that fewer are ready for fails
  std::uint32_t retire_after = 3;                  // restarts of a group, see Retirement; 0: never
  std::chrono::milliseconds vouch_timeout{1'000};  // a daemon to say that it still has a session
};

/// A worker as the leader knows it, for status.
struct MemberSnapshot {
  std::string job;
  WorkerName name;
  Role role = Role::kTrainer;
  std::string node;
  SessionId session;
  Incarnation incarnation;
  Version held_version;
  MemoryState memory = MemoryState::kEmpty;
  std::uint64_t bytes = 0;
};

struct DeliverySnapshot {
  std::string group;
  std::string sources;  // the group it is read from
  std::string state;
  absl::Status status;
  AttemptId attempt;
  std::uint64_t bytes_planned = 0;
  BytesByPath bytes;
  double seconds = 0;
};

struct VersionSnapshot {
  std::string job;
  Version version;
  std::string state;
  std::string label;
  absl::Status status;
  double average_stall_ms = 0;
  double end_to_end_ms = 0;
  std::uint64_t bound_bytes = 0;
  std::vector<DeliverySnapshot> deliveries;
};

/// A reason of an offer's: why it has no plan, or none for a group.
struct OfferRefusal {
  std::string job;
  std::string group;  // the rollout group that is left out; empty: there is no plan for any
  Refusal refusal;
  friend bool operator==(const OfferRefusal&, const OfferRefusal&) = default;
};

struct RefusalsSnapshot {
  std::vector<OfferRefusal> refusals;  // kMaxRefusals at most
  std::uint64_t total = 0;             // with those that are not listed
};

inline constexpr std::uint32_t kMaxRefusals = 10'000;

/// What a leader works with; outlives it.
struct LeaderParts {
  Timers& timers;
  PeerLinks& peers;
  Background& background;
};

/// The leader role: members of every job, one plan per set of layouts, the version table
/// (publications and deliveries), and the steps that move them. All its state is soft. It decides;
/// daemons do. Loop-confined: every method runs on the leader's loop.
class Leader final : public PeerEvents {
 public:
  Leader(const LeaderParts& parts,
         Term term,
         Incarnation incarnation,
         const LeaderOptions& options);
  ~Leader() override;
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void OnMessage(PeerId peer, ToLeader message) override;
  void OnPeerLost(PeerId peer, const absl::Status& why) override;

  Term term() const;
  /// Messages dropped because they spoke of unknown streams, sessions or attempts, or out of turn.
  std::uint64_t stale_messages() const;
  /// Of one job; empty: of all. Likewise below.
  std::vector<MemberSnapshot> Members(const std::string& job) const;
  /// Newest first in each job; `last` 0: all that are kept.
  std::vector<VersionSnapshot> Versions(const std::string& job, std::uint32_t last) const;
  /// See RefusedOffers::List.
  RefusalsSnapshot Refused(const std::string& job, std::uint32_t limit) const;
  /// Sentences: what is waited for, since when.
  std::vector<std::string> Waits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wb
