#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "daemon/move/execute/operation.h"
#include "daemon/move/mover_counters.h"
#include "daemon/state/cluster_messages.h"
#include "transport/fabric.h"
#include "transport/loop/timers.h"

namespace wb {

/// A connection to a peer's mover over which we send. One attempt owns it at a time, so closing it
/// by force costs that attempt only.
struct Lane {
  PeerAddress peer;
  std::string job;
  std::string group;
  EndpointId endpoint;
  bool open = false;  // its hello has gone through
  absl::Status failure;
  LaneCounters* counters = nullptr;
  Timers::Clock::time_point idle_since;  // while no attempt owns it
};

/// The lanes to peers, kept per (peer, job, group) between attempts: wiring up costs milliseconds.
///
/// A lane that failed, was cut, or leads to an incarnation that is gone is closed and never reused;
/// the next Acquire connects anew. One that nobody wants for kIdleTime is closed too, by whoever
/// calls CloseIdle when it is due: its group may be gone. Loop-confined.
class LaneTable {
 public:
  /// Idle lanes kept; beyond it the longest idle is closed.
  static constexpr std::size_t kMaxIdle = 64;
  static constexpr std::chrono::seconds kIdleTime{30};

  LaneTable(Fabric& fabric, OperationTable::Now now) : fabric_(fabric), now_(std::move(now)) {}

  /// An idle lane, or a new one with `open` false. INVALID_ARGUMENT: the address is none.
  absl::StatusOr<Lane*> Acquire(const PeerAddress& peer,
                                const std::string& job,
                                const std::string& group);
  /// After a clean end, nothing in flight: kept for the next attempt.
  void Release(Lane* lane);
  /// When the longest idle lane has been so for kIdleTime; nothing while none is idle.
  std::optional<Timers::Clock::time_point> idle_until() const;
  /// Closes those that have been idle for kIdleTime. The others are left as they are.
  void CloseIdle();
  /// Nothing of it is in flight any more, and it is of no further use.
  void Drop(Lane* lane);
  /// Ends what is in flight. The lane stays with its owner until Drop.
  void Cut(Lane* lane);
  /// Notes the failure and cuts it. The lane if an attempt owns it; an idle one is dropped.
  Lane* OnEndpointFailed(EndpointId endpoint, const absl::Status& status);

  /// Of a peer node, from the start of the mover on. The address is stable.
  LaneCounters& CountersOf(const std::string& node);
  std::vector<LaneCounters> Counters() const;
  std::size_t size() const { return lanes_.size(); }

 private:
  Fabric& fabric_;
  const OperationTable::Now now_;
  absl::flat_hash_map<EndpointId, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> idle_;  // longest idle first
  std::map<std::string, LaneCounters> counters_;
};

}  // namespace wb
