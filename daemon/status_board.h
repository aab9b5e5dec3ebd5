#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "daemon/leader/leader.h"
#include "daemon/loop_watch.h"
#include "daemon/move/coordinator.h"
#include "daemon/move/mover.h"
#include "daemon/readiness.h"
#include "daemon/rpc/cluster/cluster_client.h"
#include "daemon/rpc/local/local_door.h"
#include "daemon/rpc/ops/status_source.h"
#include "transport/loop/event_loop.h"

namespace wb {

/// The parts of a daemon that its status is read from. All outlive the board; `leader` is null on
/// a daemon that is not it.
struct StatusParts {
  EventLoop& control_loop;
  Coordinator& coordinator;
  ClusterClient& client;
  LocalDoor& door;
  Mover& mover;
  Readiness& readiness;
  const LoopWatch& watch;
  EventLoop* leader_loop = nullptr;
  Leader* leader = nullptr;
};

/// Gathers a daemon's status from its loops, for the ops door. Thread-safe.
class StatusBoard final : public StatusSource {
 public:
  /// `fixed` holds what does not change: node, incarnation, software, addresses, is_leader.
  StatusBoard(const StatusParts& parts,
              DaemonSnapshot fixed,
              std::chrono::steady_clock::time_point started);

  DaemonSnapshot Status() override;
  absl::StatusOr<std::vector<MemberSnapshot>> Workers(const std::string& job) override;
  absl::StatusOr<std::vector<VersionSnapshot>> Versions(const std::string& job,
                                                        std::uint32_t last) override;
  absl::StatusOr<RefusalsSnapshot> Refused(const std::string& job, std::uint32_t limit) override;

 private:
  bool AskControl(DaemonSnapshot& daemon) const;
  void AskMover(DaemonSnapshot& daemon) const;
  void AppendLeaderWaits(std::vector<std::string>& waits) const;
  absl::Status NotLeader() const;

  const StatusParts parts_;
  const DaemonSnapshot fixed_;
  const std::chrono::steady_clock::time_point started_;
};

}  // namespace wb
