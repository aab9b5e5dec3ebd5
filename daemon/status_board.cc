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

DaemonSnapshot StatusBoard::Status() {
  DaemonSnapshot daemon = fixed_;
  const auto uptime = std::chrono::steady_clock::now() - started_;
  daemon.uptime_seconds = std::chrono::duration<double>(uptime).count();
  // A part that does not answer is shown as such; what the others say is worth having all the more.
  const std::vector<LoopWatch::Stuck> stuck = parts_.watch.StuckLoops();
  for (const LoopWatch::Stuck& one : stuck) daemon.waits.push_back(one.ToString());
  const bool updating = AskControl(daemon);
  AskMover(daemon);
  AppendLeaderWaits(daemon.waits);
  if (!stuck.empty()) {
    daemon.state = "stuck";
  } else if (parts_.readiness.draining()) {
    daemon.state = "draining";
  } else if (!daemon.leader_connected) {
    daemon.state = "no leader";
  } else {
    daemon.state = updating ? "updating" : "idle";
  }
  return daemon;
}

/// What the control loop says; whether an update is in progress.
bool StatusBoard::AskControl(DaemonSnapshot& daemon) const {
  if (parts_.watch.IsStuck(kControlLoop)) return false;
  struct Answer {
    DaemonSnapshot daemon;
    bool updating = false;
  };
  absl::StatusOr<Answer> answer = AskLoop<Answer>(
      parts_.control_loop, kAskTimeout, [parts = parts_, now = daemon]() mutable -> Answer {
        now.leader_connected = parts.client.connected();
        now.term = parts.client.term().value_or(Term(0));
        now.sessions = static_cast<std::uint32_t>(parts.coordinator.sessions());
        now.region_bytes = parts.door.admission().memory_bytes();
        now.leader_sent_bytes = parts.client.counters().sent_bytes;
        now.leader_received_bytes = parts.client.counters().received_bytes;
        now.leader_sent_messages = parts.client.counters().sent_messages;
        now.leader_received_messages = parts.client.counters().received_messages;
        const std::vector<std::string> waits = parts.coordinator.Waits();
        now.waits.insert(now.waits.end(), waits.begin(), waits.end());
        if (!now.leader_connected) {
          now.waits.push_back(absl::StrCat("leader ", now.leader_address, ": ",
                                           parts.client.last_error().message()));
        }
        return {std::move(now), parts.coordinator.updating()};
      });
  if (!answer.ok()) {
    daemon.waits.push_back(absl::StrCat("control: ", answer.status().message()));
    return false;
  }
  daemon = std::move(answer->daemon);
  return answer->updating;
}

void StatusBoard::AskMover(DaemonSnapshot& daemon) const {
  if (parts_.watch.IsStuck(kMoverLoop)) return;
  absl::StatusOr<MoverCounters> counters = parts_.mover.Counters();
  if (counters.ok()) {
    daemon.lanes = std::move(counters->lanes);
    daemon.regions = counters->regions;
  } else {
    daemon.waits.push_back(absl::StrCat("mover: ", counters.status().message()));
  }
}

void StatusBoard::AppendLeaderWaits(std::vector<std::string>& waits) const {
  if (parts_.leader == nullptr || parts_.watch.IsStuck(kLeaderLoop)) return;
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

absl::StatusOr<RefusalsSnapshot> StatusBoard::Refused(const std::string& job, std::uint32_t limit) {
  if (parts_.leader == nullptr) return NotLeader();
  return AskLoop<RefusalsSnapshot>(
      *parts_.leader_loop, kAskTimeout,
      [leader = parts_.leader, job, limit] { return leader->Refused(job, limit); });
}

}  // namespace wb
