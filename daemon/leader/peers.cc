#include "daemon/leader/peers.h"

namespace wb {

Peer* PeerTable::Find(PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

Peer* PeerTable::FindNode(const std::string& node) {
  const auto found = by_node_.find(node);
  return found == by_node_.end() ? nullptr : Find(found->second);
}

void PeerTable::Add(PeerId id, ClusterHello hello) {
  by_node_[hello.node] = id;
  peers_.insert_or_assign(id, Peer{id, std::move(hello), {}, 0});
}

void PeerTable::Remove(PeerId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  by_node_.erase(found->second.hello.node);
  peers_.erase(found);
}

void PeerTable::Send(const std::string& node, FromLeader message) {
  if (const auto found = by_node_.find(node); found != by_node_.end()) {
    links_.Send(found->second, std::move(message));
  }
}

}  // namespace wb
