#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/leader/leader.h"
#include "daemon/move/coordinator.h"
#include "tests/support/manual_timers.h"

namespace wb::test {

/// A leader and the coordinators of several nodes, with queues for wires: what is under way is
/// delivered one at a time, in an order drawn by the test. Movers stage or fail as drawn; clients
/// take go notices or not. Everything is checked that can be checked from outside.
class ClusterWorld final : public PeerLinks, public Background {
 public:
  ClusterWorld(std::mt19937_64& rng, const std::vector<std::string>& nodes);
  ~ClusterWorld() override;

  ManualTimers timers;
  /// Chances in percent, when the mover has work.
  int chance_of_failure = 0;
  int chance_of_lost_notice = 0;

  Coordinator& coordinator(const std::string& node);
  Leader& leader() { return *leader_; }
  /// Joins a worker; the deadline is 5 s.
  void Open(const std::string& node,
            const SessionId& session,
            const Registration& registration,
            int world_size,
            std::function<void(SessionOpened)> done);
  /// A number in [0, below).
  int Draw(int below);
  /// Delivers one thing that is under way, drawn; false when there is none.
  bool Deliver();
  /// Delivers all, and lets `time` pass in small steps.
  void Settle(std::chrono::milliseconds time);
  /// Breaks the stream of a node: both ends hear of it, what was under way is lost.
  void Cut(const std::string& node);
  /// The leader's process dies with all it knows; another one starts, without streams.
  void ReplaceLeader();
  /// Gives a node without stream a new one.
  void Connect(const std::string& node);

  // PeerLinks
  void Send(PeerId peer, FromLeader message) override;
  void Pack(PrepareAttempt& /*message*/) const override {}
  void Close(PeerId peer, const absl::Status& status) override;

  // Background
  void Submit(Task work) override { works_.push_back(std::move(work)); }
  void Report(Task task) override { made_.push_back(std::move(task)); }

 private:
  class Node;

  std::mt19937_64& rng_;
  std::unique_ptr<Leader> leader_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::uint64_t next_peer_ = 1;
  std::uint64_t term_ = 1;
  std::set<AttemptId> committed_;  // by the leader's word
  std::set<AttemptId> aborted_;
  std::deque<Task> works_;  // of the leader's
  std::deque<Task> made_;   // that these report
};

}  // namespace wb::test
