#pragma once

#include <functional>
#include <map>
#include <string>

#include "daemon/leader/state.h"

namespace wb {

/// Newcomers whose rank a session of another daemon has. That daemon is asked, and has until
/// `vouch_timeout` to answer: by then it has told the leader of every session that is over. One
/// that does not answer vouches for nobody. Called inside turns only.
class Vouching {
 public:
  /// What to do with a newcomer when the daemon of session `holder` has answered, or has not in
  /// time.
  using Settle = std::function<void(Peer& peer, RegisterWorker newcomer, const SessionId& holder)>;

  Vouching(LeaderState& state, Settle vouched, Settle unanswered)
      : state_(state), vouched_(std::move(vouched)), unanswered_(std::move(unanswered)) {}

  /// Takes the call if its rank is held by a session of another daemon.
  bool Ask(const Peer& peer, RegisterWorker& call);
  /// The daemon of `node` has answered what it was asked.
  void OnAnswer(const std::string& node);
  /// The newcomer does not wait any more; false if it never did.
  bool Forget(const SessionId& newcomer);
  /// The stream has ended, and its members are gone: nobody is to be waited for, or answered.
  void PeerLost(PeerId peer, const std::string& node);

 private:
  struct Newcomer {
    PeerId peer;
    RegisterWorker call;
    std::string asked;  // node of the daemon
    SessionId holder;
    TimerId timer;
  };
  void End(const SessionId& newcomer, const Settle& settle);

  LeaderState& state_;
  const Settle vouched_;
  const Settle unanswered_;
  std::map<SessionId, Newcomer> waiting_;
};

}  // namespace wb
