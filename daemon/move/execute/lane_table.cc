#include "daemon/move/execute/lane_table.h"

#include <algorithm>

#include "planner/base/status_macros.h"

namespace wb {

absl::StatusOr<Lane*> LaneTable::Acquire(const PeerAddress& peer,
                                         const std::string& job,
                                         const std::string& group) {
  for (std::size_t i = 0; i < idle_.size();) {
    Lane* lane = idle_[i];
    if (lane->peer.node != peer.node) {
      ++i;
      continue;
    }
    const bool current =
        lane->peer.incarnation == peer.incarnation && lane->peer.data_address == peer.data_address;
    if (current && (lane->job != job || lane->group != group)) {
      ++i;
      continue;
    }
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    if (current) return lane;
    Drop(lane);  // the peer has started anew
  }
  WB_ASSIGN_OR_RETURN(const EndpointId endpoint, fabric_.Connect(peer.data_address));
  auto lane = std::make_unique<Lane>();
  lane->peer = peer;
  lane->job = job;
  lane->group = group;
  lane->endpoint = endpoint;
  lane->counters = &CountersOf(peer.node);
  ++lane->counters->connects;
  Lane* made = lane.get();
  lanes_.emplace(endpoint, std::move(lane));
  return made;
}

void LaneTable::Release(Lane* lane) {
  if (!lane->open || !lane->failure.ok()) {
    Drop(lane);
    return;
  }
  if (idle_.size() == kMaxIdle) {
    Drop(idle_.front());
    idle_.erase(idle_.begin());
  }
  lane->idle_since = now_();
  idle_.push_back(lane);
}

std::optional<Timers::Clock::time_point> LaneTable::idle_until() const {
  if (idle_.empty()) return std::nullopt;
  return idle_.front()->idle_since + kIdleTime;
}

void LaneTable::CloseIdle() {
  const Timers::Clock::time_point now = now_();
  const auto due = std::find_if(idle_.begin(), idle_.end(), [&](const Lane* lane) {
    return now - lane->idle_since < kIdleTime;
  });
  for (auto lane = idle_.begin(); lane != due; ++lane) Drop(*lane);
  idle_.erase(idle_.begin(), due);
}

void LaneTable::Drop(Lane* lane) {
  fabric_.CloseForced(lane->endpoint);
  lanes_.erase(lane->endpoint);
}

void LaneTable::Cut(Lane* lane) {
  fabric_.CloseForced(lane->endpoint);
}

Lane* LaneTable::OnEndpointFailed(EndpointId endpoint, const absl::Status& status) {
  const auto found = lanes_.find(endpoint);
  if (found == lanes_.end()) return nullptr;
  Lane* lane = found->second.get();
  if (lane->failure.ok()) lane->failure = status;
  const auto idle = std::find(idle_.begin(), idle_.end(), lane);
  if (idle == idle_.end()) {
    Cut(lane);
    return lane;
  }
  idle_.erase(idle);
  Drop(lane);
  return nullptr;
}

LaneCounters& LaneTable::CountersOf(const std::string& node) {
  const auto [entry, fresh] = counters_.try_emplace(node);
  if (fresh) {
    entry->second.peer_node = node;
    entry->second.fabric = fabric_.traits().name;
  }
  return entry->second;
}

std::vector<LaneCounters> LaneTable::Counters() const {
  std::vector<LaneCounters> all;
  all.reserve(counters_.size());
  for (const auto& [node, counters] : counters_) all.push_back(counters);
  return all;
}

}  // namespace wb
