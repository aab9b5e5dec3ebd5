#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"

#include "daemon/leader/leader.h"
#include "daemon/state/cluster_messages.h"

namespace wb {

/// A daemon whose stream has said hello.
struct Peer {
  PeerId id;
  ClusterHello hello;
  /// Of the plan whose part for (job, group) this daemon holds.
  std::map<std::pair<std::string, std::string>, Fingerprint> plans_sent;
  std::size_t members = 0;  // of all jobs
};

/// The attached daemons, by stream and by node.
/// Invariant: a node name belongs to one stream at a time. Loop-confined.
class PeerTable {
 public:
  explicit PeerTable(PeerLinks& links) : links_(links) {}

  Peer* Find(PeerId id);
  Peer* FindNode(const std::string& node);
  void Add(PeerId id, ClusterHello hello);
  void Remove(PeerId id);
  /// Dropped when no daemon of that node is attached: it will replay what it has when it is.
  void Send(const std::string& node, FromLeader message);
  const PeerLinks& links() const { return links_; }
  void Close(PeerId id, const absl::Status& status) { links_.Close(id, status); }

 private:
  PeerLinks& links_;
  std::map<PeerId, Peer> peers_;
  std::map<std::string, PeerId> by_node_;
};

}  // namespace wb
