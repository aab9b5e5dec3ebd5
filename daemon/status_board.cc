#include "daemon/status_board.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "daemon/rpc/ask_loop.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr std::chrono::milliseconds kAskTimeout{2'000};

}  // namespace

StatusBoard::StatusBoard(const StatusParts& parts,
                         DaemonSnapshot fixed,
                         std::chrono::steady_clock::time_point started)
    : parts_(parts), fixed_(std::move(fixed)), started_(started) {}

absl::StatusOr<DaemonSnapshot> StatusBoard::Status() {
  const auto uptime = std::chrono::steady_clock::now() - started_;
  WB_ASSIGN_OR_RETURN(
      DaemonSnapshot daemon,
      AskLoop<DaemonSnapshot>(parts_.control_loop, kAskTimeout, [parts = parts_, fixed = fixed_] {
        DaemonSnapshot now = fixed;
        now.leader_connected = parts.client.connected();
        now.term = parts.client.term().value_or(Term(0));
        now.sessions = static_cast<std::uint32_t>(parts.coordinator.sessions());
        now.region_bytes = parts.door.admission().memory_bytes();
        now.leader_sent_bytes = parts.client.counters().sent_bytes;
        now.leader_received_bytes = parts.client.counters().received_bytes;
        now.leader_sent_messages = parts.client.counters().sent_messages;
        now.leader_received_messages = parts.client.counters().received_messages;
        now.waits = parts.coordinator.Waits();
        if (!now.leader_connected) {
          now.waits.push_back(absl::StrCat("leader ", now.leader_address, ": ",
                                           parts.client.last_error().message()));
        }
        return now;
      }));
  daemon.uptime_seconds = std::chrono::duration<double>(uptime).count();
  // A part that does not answer is shown as such; what the others say is worth having all the more.
  absl::StatusOr<MoverCounters> counters = parts_.mover.Counters();
  if (counters.ok()) {
    daemon.lanes = std::move(counters->lanes);
    daemon.regions = counters->regions;
  } else {
    daemon.waits.push_back(absl::StrCat("mover: ", counters.status().message()));
  }
  AppendLeaderWaits(daemon.waits);
  return daemon;
}

void StatusBoard::AppendLeaderWaits(std::vector<std::string>& waits) const {
  if (parts_.leader == nullptr) return;
  const absl::StatusOr<std::vector<std::string>> answer = AskLoop<std::vector<std::string>>(
      *parts_.leader_loop, kAskTimeout, [leader = parts_.leader] { return leader->Waits(); });
  if (answer.ok()) {
    waits.insert(waits.end(), answer->begin(), answer->end());
  } else {
    waits.push_back(absl::StrCat("leader role: ", answer.status().message()));
  }
}

absl::Status StatusBoard::NotLeader() const {
  return absl::FailedPreconditionError(
      absl::StrCat("node ", fixed_.node, " is not the leader: ask the daemon that listens on ",
                   fixed_.leader_address, " for its cluster"));
}

absl::StatusOr<std::vector<MemberSnapshot>> StatusBoard::Workers(const std::string& job) {
  if (parts_.leader == nullptr) return NotLeader();
  return AskLoop<std::vector<MemberSnapshot>>(
      *parts_.leader_loop, kAskTimeout,
      [leader = parts_.leader, job] { return leader->Members(job); });
}

absl::StatusOr<std::vector<VersionSnapshot>> StatusBoard::Versions(const std::string& job,
                                                                   std::uint32_t last) {
  if (parts_.leader == nullptr) return NotLeader();
  return AskLoop<std::vector<VersionSnapshot>>(
      *parts_.leader_loop, kAskTimeout,
      [leader = parts_.leader, job, last] { return leader->Versions(job, last); });
}

}  // namespace wb
