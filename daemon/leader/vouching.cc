#include "daemon/leader/vouching.h"

#include <utility>
#include <vector>

namespace wb {

bool Vouching::Ask(const Peer& peer, RegisterWorker& call) {
  const auto job = state_.jobs.find(call.registration->job);
  if (job == state_.jobs.end()) return false;
  const Member* holder = job->second.members.Find(call.registration->layout.name);
  if (holder == nullptr || holder->node() == peer.hello.node) return false;
  const SessionId session = call.session;
  Newcomer newcomer{peer.id, std::move(call), holder->node(), holder->session,
                    state_.turns.After(state_.options.vouch_timeout,
                                       [this, session] { End(session, unanswered_); })};
  const std::string asked = newcomer.asked;
  if (const auto again = waiting_.find(session); again != waiting_.end()) {
    state_.turns.Cancel(again->second.timer);
  }
  waiting_.insert_or_assign(session, std::move(newcomer));
  state_.peers.Send(asked, Heartbeat{});
  return true;
}

void Vouching::End(const SessionId& newcomer, const Settle& settle) {
  auto ended = waiting_.extract(newcomer);
  if (ended.empty()) return;
  state_.turns.Cancel(ended.mapped().timer);
  Peer* peer = state_.peers.Find(ended.mapped().peer);
  if (peer == nullptr) return;
  settle(*peer, std::move(ended.mapped().call), ended.mapped().holder);
}

void Vouching::OnAnswer(const std::string& node) {
  std::vector<SessionId> answered;
  for (const auto& [session, newcomer] : waiting_) {
    if (newcomer.asked == node) answered.push_back(session);
  }
  for (const SessionId& session : answered) End(session, vouched_);
}

bool Vouching::Forget(const SessionId& newcomer) {
  const auto found = waiting_.find(newcomer);
  if (found == waiting_.end()) return false;
  state_.turns.Cancel(found->second.timer);
  waiting_.erase(found);
  return true;
}

void Vouching::PeerLost(PeerId peer, const std::string& node) {
  std::vector<SessionId> gone;
  for (const auto& [session, newcomer] : waiting_) {
    if (newcomer.peer == peer) gone.push_back(session);
  }
  for (const SessionId& session : gone) Forget(session);
  OnAnswer(node);
}

}  // namespace wb
