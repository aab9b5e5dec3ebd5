#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "daemon/leader/leader.h"
#include "daemon/leader/peers.h"
#include "daemon/leader/plans.h"
#include "daemon/leader/publication.h"
#include "daemon/leader/refused_offers.h"
#include "daemon/leader/retirement.h"
#include "daemon/leader/works.h"
#include "daemon/state/members.h"
#include "transport/loop/turns.h"

namespace wb {

/// A rollout rank that waits in Receive for a version that is not on offer yet.
struct EarlyAccept {
  Version version;
  Caller caller;
};

/// A version that members of a group hold in doubt, or held: the leader that decided is gone.
struct Doubt {
  Timers::Clock::time_point since;
  std::optional<TimerId> deadline;  // while it is open
  std::optional<bool> committed;    // the decision; never changed
};

/// All the leader knows of one job.
struct LeaderJob {
  std::string name;
  JobMembers members;
  PlanCache plans;       // from the trainers
  PlanCache late_plans;  // from one rollout group to another
  Version spent;         // the newest version that was ever opened
  std::map<Version, Publication> publications;
  std::map<WorkerName, EarlyAccept> accepts;
  Retirement retirement;
  std::map<std::pair<std::string, Version>, Doubt> doubts;  // by group and version
  std::set<std::pair<Version, std::string>> late;           // LateDeliveries': by version and group
  // Sessions of two groups, each by its first, between which there is no plan; until a version is
  // offered to all.
  std::set<std::pair<SessionId, SessionId>> late_refused;

  /// A new version must be above this.
  Version newest() const { return std::max(spent, members.NewestHeld()); }
  /// The publication that is opening, or that is offered; at most one each.
  Publication* InState(PublicationState state);
  Publication* Find(Version version);
  std::set<std::string> NodesOfGroup(const std::string& group) const;
};

/// Which delivery an attempt is a try of.
struct AttemptOwner {
  std::string job;
  Version version;
  std::string group;
  bool late = false;  // Delivery::late
};

/// What the leader's verbs (registrations, publications, deliveries) work on. Invariant: every
/// session of a member is in `job_of_session`; every attempt of a delivery that has not ended is in
/// `attempts`. Touched only inside turns.
struct LeaderState {
  LeaderState(const LeaderParts& parts, const LeaderOptions& leader_options)
      : turns(parts.timers),
        works(parts.background, turns),
        peers(parts.peers),
        options(leader_options) {}

  Turns turns;
  Works works;
  PeerTable peers;
  LeaderOptions options;
  Term term;
  Incarnation incarnation;
  std::map<std::string, LeaderJob> jobs;
  RefusedOffers refused;
  absl::flat_hash_map<SessionId, std::string> job_of_session;
  absl::flat_hash_map<AttemptId, AttemptOwner> attempts;
  std::uint64_t stale_messages = 0;  // of unknown peers, sessions or attempts; dropped

  /// The job of a member's session, or nullptr.
  LeaderJob* JobOf(const SessionId& session);
};

}  // namespace wb
