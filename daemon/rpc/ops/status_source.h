#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/leader/leader.h"
#include "daemon/move/mover.h"
#include "planner/model/ids.h"

namespace wb {

/// A daemon as the ops door shows it.
struct DaemonSnapshot {
  std::string node;
  std::string
      state;  // "stuck", "draining", "no leader", "updating" or "idle": the first that holds
  Incarnation incarnation;
  std::string software;
  double uptime_seconds = 0;
  std::string leader_address;
  bool leader_connected = false;
  bool is_leader = false;
  Term term;  // of the leader it is connected to; 0: none
  std::uint32_t sessions = 0;
  std::uint64_t region_bytes = 0;
  std::uint64_t regions = 0;            // mappings of workers' memory
  std::uint64_t leader_sent_bytes = 0;  // messages to leaders and from them
  std::uint64_t leader_received_bytes = 0;
  std::uint64_t leader_sent_messages = 0;
  std::uint64_t leader_received_messages = 0;
  std::vector<std::string> waits;
  std::vector<LaneCounters> lanes;
  std::string data_address;  // for people
};

/// Where the ops door gets what it shows. Thread-safe; every method may wait up to a few seconds
/// for the daemon's loops, then UNAVAILABLE.
class StatusSource {
 public:
  virtual ~StatusSource() = default;
  /// Loops that are stuck are not waited for: the snapshot's waits tell of them.
  virtual DaemonSnapshot Status() = 0;
  /// FAILED_PRECONDITION names the leader where this daemon is not it. Empty `job`: all.
  virtual absl::StatusOr<std::vector<MemberSnapshot>> Workers(const std::string& job) = 0;
  /// As Workers; newest first, `last` 0: all that are kept.
  virtual absl::StatusOr<std::vector<VersionSnapshot>> Versions(const std::string& job,
                                                                std::uint32_t last) = 0;
  /// As Workers; the first `limit`, or with 0 all that are kept.
  virtual absl::StatusOr<RefusalsSnapshot> Refused(const std::string& job, std::uint32_t limit) = 0;
};

}  // namespace wb
