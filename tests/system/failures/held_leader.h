#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/move/coordinator.h"
#include "daemon/state/cluster_messages.h"

namespace wb::test {

/// Stands between a daemon's coordinator and its leader, and holds the messages that a test asks
/// for, either way; all others go on. What is held when the leader is lost is lost with it, and
/// nothing is held any more. Loop-confined to the control loop.
class HeldLeader final : public LeaderLink, public LeaderEvents {
 public:
  /// `reached` is told the kind of each message that is held.
  explicit HeldLeader(std::function<void(const std::string& kind)> reached)
      : reached_(std::move(reached)) {}
  /// Both before the first message.
  void SetLink(LeaderLink* link) { link_ = link; }
  void SetCoordinator(LeaderEvents* coordinator) { coordinator_ = coordinator; }

  /// Holds messages of a kind, named as in cluster.proto: register_worker, prepared, staged,
  /// committed (up), prepare, go, commit (down). Those of attempts only for deliveries to `group`,
  /// unless that is "".
  void Hold(const std::string& kind, const std::string& group) { holds_[kind] = group; }
  /// Lets all that is held go, in its order, and holds nothing more.
  void Release();

  void Send(ToLeader message) override;
  void OnLeaderConnected() override { coordinator_->OnLeaderConnected(); }
  void OnLeaderLost(const absl::Status& why) override;
  void OnLeaderMessage(FromLeader message) override;

 private:
  bool Holds(const std::string& kind, AttemptId attempt) const;
  void Keep(const std::string& kind, std::function<void()> go_on);

  const std::function<void(const std::string&)> reached_;
  LeaderLink* link_ = nullptr;
  LeaderEvents* coordinator_ = nullptr;
  std::map<std::string, std::string> holds_;  // kind to group
  std::map<AttemptId, std::string> groups_;   // of the attempts that were prepared here
  std::vector<std::function<void()>> held_;
};

}  // namespace wb::test
