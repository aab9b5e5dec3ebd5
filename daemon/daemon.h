#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "daemon/options.h"
#include "daemon/rpc/tcp_address.h"
#include "daemon/state/cluster_messages.h"
#include "planner/model/ids.h"

namespace wb {

class EventLoop;
class Fabric;
class LeaderEvents;
class LeaderLink;
class RegionTable;

/// Where a test's daemon puts something of its own between two parts of a daemon: each is given the
/// real part and returns what is used in its place, which outlives the daemon. All empty in the
/// product.
struct DaemonSeams {
  /// Between the coordinator and its way to the leader, and back. Used on `control`, the loop of
  /// both; called before it runs.
  std::function<LeaderLink&(LeaderLink& link, EventLoop& control)> to_leader = {};
  std::function<LeaderEvents&(LeaderEvents& coordinator)> from_leader = {};
  /// Between the mover and its fabric; called on the mover's thread.
  std::function<std::unique_ptr<Fabric>(std::unique_ptr<Fabric> fabric, const RegionTable& regions)>
      fabric = {};
};

/// What distinguishes this process from every other; drawn by main.
struct DaemonIdentity {
  Incarnation incarnation;
  /// Of the leader role. Microseconds since 1970 at the start of the process: larger at each start
  /// as long as the node's clock does not go back by more than the leader was away.
  Term term;
  std::string software;  // version of the binary
  std::string host;      // for people
  std::int32_t pid = 0;  // for people
  std::function<SessionId()> new_session_id;
  /// Is given a line for people whenever the daemon finds or loses its leader, from any thread; may
  /// be empty.
  std::function<void(const std::string&)> tell = {};
};

/// One weightbridged, composed: run directory, fabric, leader role (where it listens), the way to
/// the leader, the local and the ops door, and the threads of its loops (control, leader, mover).
///
/// Three verbs: Start (all or nothing), Drain (by a deadline, idempotent), destroy. The leader's
/// own daemon attaches to it over the same gRPC path as all others. Thread-compatible.
class Daemon {
 public:
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options,
                                                       DaemonIdentity identity,
                                                       const DaemonSeams& seams = {});
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  /// Refuses new work, lets calls in progress finish for three fifths of `within`, cancels the rest
  /// and ends every session and stream.
  void Drain(std::chrono::milliseconds within);

  /// Of the leader: the configured one, or our own with the real port.
  const TcpAddress& leader_address() const;
  /// control.listen with the real port.
  std::optional<TcpAddress> control_address() const;

 private:
  struct State;
  Daemon();
  std::unique_ptr<State> state_;
};

}  // namespace wb
