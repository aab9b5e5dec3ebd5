#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"

#include "daemon/leader/plans.h"
#include "daemon/state/cluster_messages.h"
#include "daemon/state/versions.h"
#include "planner/model/ids.h"
#include "transport/loop/timers.h"

namespace wb {

/// A worker inside a Publish or Receive call.
struct Caller {
  SessionId session;
  std::string node;
  Timers::Clock::time_point since;
  std::optional<Timers::Clock::time_point> answered;
  /// Of a Publish from a snapshot: what taking it took before `since`. Then the worker went on.
  std::optional<std::chrono::duration<double>> snapshot = {};
};

/// How far one daemon is with an attempt.
struct AttemptPeer {
  std::map<std::string, WorkerGeneration> workers;  // on its node; until it is asked
  bool asked = false;  // to prepare; before, it knows nothing of the attempt
  bool prepared = false;
  bool staged = false;
  bool committed = false;
  bool aborted = false;
};

/// A version on its way to one rollout group. `state` moves by Step alone.
struct Delivery {
  using TimePoint = Timers::Clock::time_point;

  std::string group;
  std::string sources;  // the group that it is read from: the trainers, or where `late` a rollout
  bool late = false;    // one of Publication::late
  std::uint32_t tries = 0;                 // late ones of the version, up to this one
  std::shared_ptr<const SolvedPlan> plan;  // until it has ended: layouts are large
  DeliveryState state = DeliveryState::kWaiting;
  absl::Status status;                              // why it failed
  std::map<std::int32_t, Caller> accepted;          // by rank
  std::optional<AttemptId> attempt;                 // once all ranks have accepted
  std::map<std::string, AttemptPeer> participants;  // of the attempt, by node; the lost are dropped
  TimePoint since;                                  // of the present state
  std::optional<TimePoint> went;
  std::optional<TimePoint> ended;   // committed everywhere, or failed and nothing moves any more
  std::optional<TimerId> deadline;  // of an abort
  std::uint64_t bytes_planned = 0;
  BytesByPath bytes;

  /// The sources are not read by it any more.
  bool over() const { return CommitDecided(state) || ended.has_value(); }
};

/// One version of a job. `state` moves by Step alone. Deliveries exist from kOffered on, one for
/// each group that was whole then.
struct Publication {
  using TimePoint = Timers::Clock::time_point;

  Version version;
  PublishOptions options;  // as all ranks say
  PublicationState state = PublicationState::kOpening;
  absl::Status status;
  std::map<WorkerName, Caller> publishers;
  /// What each rank said, when they disagreed: a rank that comes late with one of these numbers
  /// hears why the round failed.
  std::map<WorkerName, Version> named;
  TimePoint since;                  // of the present state
  TimePoint opened;                 // first publish
  std::optional<TimePoint> ready;   // last trainer rank has published
  std::optional<TimerId> deadline;  // of the present state: start_timeout
  bool deadline_passed = false;
  bool inherited = false;         // an earlier leader's: only what is delivered late is known of it
  std::uint64_t bound_bytes = 0;  // of the plan
  std::map<std::string, Delivery> deliveries;
  /// Of groups that catch up once it is released: LateDeliveries'. Each group's newest.
  std::map<std::string, Delivery> late;

  /// Whether the version fails with the delivery to `group`.
  bool requires_group(const std::string& group) const {
    return options.required_groups.empty() || options.required_groups.contains(group);
  }
  /// The newest delivery to the group, or nullptr.
  Delivery* DeliveryTo(const std::string& group);
  bool over() const {
    return state == PublicationState::kReleased || state == PublicationState::kFailed;
  }
};

/// Takes a legal step and logs it; an illegal one is a fault of ours and ends the process.
void Step(const std::string& job,
          Publication& publication,
          PublicationState to,
          Timers::Clock::time_point now);
void Step(const std::string& job,
          const Publication& publication,
          Delivery& delivery,
          DeliveryState to,
          Timers::Clock::time_point now);

}  // namespace wb
