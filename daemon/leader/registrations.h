#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/leader/doubts.h"
#include "daemon/leader/publications.h"
#include "daemon/leader/state.h"
#include "daemon/leader/vouching.h"

namespace wb {

/// Jobs kept at most. One without members makes room for a new one; its version numbers are then
/// forgotten.
inline constexpr std::size_t kMaxJobs = 1024;

/// The verb "register": which daemons are attached and which workers are members.
/// Called inside turns only.
class Registrations {
 public:
  Registrations(LeaderState& state, Publications& publications);

  /// A stream's first message. The same process on a new stream replaces its old one; another
  /// process under a node name that is attached is refused and its stream closed.
  void Hello(PeerId id, ClusterHello hello);
  void Register(Peer& peer, RegisterWorker call);
  void Unregister(Peer& peer, const UnregisterWorker& call);
  /// The daemon has told of every session of its that was over when the leader asked.
  void OnHeartbeat(const Peer& peer) { vouching_.OnAnswer(peer.hello.node); }
  /// The stream has ended: its workers are gone.
  void PeerLost(PeerId id, const absl::Status& why);

 private:
  void Settle(Peer& peer, RegisterWorker call);
  void Replace(Peer& peer, RegisterWorker call, const SessionId& silent);
  absl::Status Admit(Peer& peer, RegisterWorker call);
  static void DisownStranger(LeaderJob& job, const SessionId& session);
  absl::Status MakeRoom();
  std::optional<Member> Remove(LeaderJob& job, const SessionId& session);

  LeaderState& state_;
  Publications& publications_;
  Doubts doubts_;
  Vouching vouching_;
};

}  // namespace wb
