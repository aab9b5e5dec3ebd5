#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "daemon/move/coordinator.h"
#include "tests/daemon/support/control_jobs.h"
#include "tests/support/manual_timers.h"

namespace wb::test {

/// A coordinator with a leader, a mover and clients that do as they are told. The leader is the
/// test itself; the mover does what it is asked unless told otherwise, and reports it in Settle.
class DaemonWorld final : public LeaderLink, public AttemptRunner, public SessionNotices {
 public:
  explicit DaemonWorld(const std::string& node = "n1");

  ManualTimers timers;
  bool registers = true;         // the leader admits every worker
  bool prepares = true;          // the mover
  bool stages = true;            // the mover
  bool ends = true;              // the mover
  bool copies = true;            // the mover
  bool accepts_go = true;        // the clients
  std::set<SessionId> gone;      // of clients that have gone, which the door has not told
  std::vector<std::string> log;  // what mover and clients were asked, in order
  std::map<AttemptId, AttemptWork> works;
  std::map<RegionId, std::uint64_t> regions;    // bytes of those that are open
  std::function<void()> on_released;            // of every session that is opened from now on
  bool unmaps = true;                           // the mover, when a region is removed
  std::vector<std::function<void()>> removals;  // else, to be called later
  std::vector<std::pair<SessionId, std::function<void()>>> notices;
  std::map<SnapshotId, SnapshotWork> snapshots;            // that the mover was to take
  std::map<SessionId, Version> copied;                     // what clients were told of these last
  std::map<SessionId, Version> staged;                     // what clients were told last
  std::map<SessionId, std::pair<Version, bool>> outcomes;  // likewise: version, committed

  Coordinator& coordinator() { return coordinator_; }
  Timers::Clock::time_point In(std::chrono::milliseconds wait) const { return timers.Now() + wait; }

  /// Opens a session; the status is set once it is answered.
  struct Opened {
    std::optional<absl::Status> status;
    MemoryState memory = MemoryState::kEmpty;
  };
  std::shared_ptr<Opened> Open(const SessionId& session,
                               const Registration& registration,
                               int world_size,
                               const HeldBefore& held = {});
  /// Of a trainer that will publish snapshots.
  std::shared_ptr<Opened> OpenForSnapshots(const SessionId& session,
                                           const Registration& registration,
                                           int world_size);
  /// Calls with a deadline of 10 s unless said otherwise; the result is set once.
  template <typename Result>
  using Pending = std::shared_ptr<std::optional<Result>>;
  Pending<PublishResult> Publish(const SessionId& session,
                                 std::uint64_t version,
                                 std::chrono::milliseconds deadline = kDeadline,
                                 bool snapshot = false);
  Pending<PublishResult> PublishSnapshot(const SessionId& session,
                                         std::uint64_t version,
                                         std::chrono::milliseconds deadline = kDeadline) {
    return Publish(session, version, deadline, true);
  }
  Pending<ReceiveResult> Receive(const SessionId& session,
                                 std::uint64_t version,
                                 std::chrono::milliseconds deadline = kDeadline);
  Pending<absl::StatusOr<Version>> Wait(const SessionId& session,
                                        std::uint64_t at_least,
                                        std::chrono::milliseconds deadline = kDeadline);

  void Say(FromLeader message) { coordinator_.OnLeaderMessage(std::move(message)); }
  /// Delivers what the mover has to report.
  void Settle();
  /// Takes all messages of one kind that went to the leader.
  template <typename Message>
  std::vector<Message> Take() {
    std::vector<Message> taken;
    std::vector<ToLeader> kept;
    for (ToLeader& message : sent_) {
      if (Message* found = std::get_if<Message>(&message); found != nullptr) {
        taken.push_back(std::move(*found));
      } else {
        kept.push_back(std::move(message));
      }
    }
    sent_ = std::move(kept);
    return taken;
  }

  /// All messages that went to the leader.
  std::vector<ToLeader> TakeAll() { return std::exchange(sent_, {}); }

  // LeaderLink
  void Send(ToLeader message) override;
  // AttemptRunner
  void AddRegion(RegionId id, Region region) override;
  void RemoveRegion(RegionId id, std::function<void()> removed) override;
  void Prepare(AttemptWork work) override;
  void Go(AttemptId attempt) override;
  void Abort(AttemptId attempt) override;
  void Finish(AttemptId attempt) override;
  void TakeSnapshot(SnapshotWork work) override;
  void DropSnapshot(SnapshotId snapshot) override;
  // SessionNotices
  void NotifyGo(const SessionId& session, Version version, std::function<void()> accepted) override;
  void NotifyStaged(const SessionId& session, Version version, AttemptId attempt) override;
  void NotifyOutcome(const SessionId& session, Version version, bool committed) override;
  void NotifySnapshot(const SessionId& session, Version version, double seconds) override;
  void CloseGone() override;

 private:
  static constexpr std::chrono::milliseconds kDeadline{10'000};
  std::shared_ptr<Opened> Open(SessionOpening opening);
  std::vector<ToLeader> sent_;
  std::deque<std::function<void()>> reports_;
  Coordinator coordinator_;
};

/// Connects the leader and opens engine0 whole on n1: sessions r0 and r1.
void OpenEngine(DaemonWorld& world);

/// A prepare message for the standard job: engine0 of two ranks on n1, two trainers on n0.
[[nodiscard]] PrepareAttempt PrepareFor(const std::string& node,
                                        std::uint64_t version,
                                        bool with_plan = true);

}  // namespace wb::test
