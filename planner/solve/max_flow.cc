#include "planner/solve/max_flow.h"

#include <algorithm>

namespace wb {

std::size_t MaxFlow::AddEdge(std::size_t from, std::size_t to, std::uint64_t capacity) {
  const std::size_t edge = edges_.size();
  edges_.push_back({to, first_[from], capacity});
  first_[from] = edge;
  edges_.push_back({from, first_[to], 0});
  first_[to] = edge + 1;
  return edge;
}

bool MaxFlow::FindLevels(std::size_t source, std::size_t sink) {
  std::fill(level_.begin(), level_.end(), kUnreached);
  level_[source] = 0;
  std::vector<std::size_t> queue{source};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::size_t node = queue[head];
    for (std::size_t e = first_[node]; e != kNone; e = edges_[e].next) {
      if (edges_[e].left == 0 || level_[edges_[e].to] != kUnreached) continue;
      level_[edges_[e].to] = level_[node] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[sink] != kUnreached;
}

// Sends along path_ what fits and keeps the part of it before the first edge that is now full.
std::uint64_t MaxFlow::Push() {
  std::uint64_t amount = UINT64_MAX;
  for (const std::size_t e : path_) amount = std::min(amount, edges_[e].left);
  std::size_t keep = path_.size();
  for (std::size_t i = path_.size(); i-- > 0;) {
    edges_[path_[i]].left -= amount;
    edges_[path_[i] ^ 1].left += amount;
    if (edges_[path_[i]].left == 0) keep = i;
  }
  path_.resize(keep);
  return amount;
}

// A blocking flow in the graph of levels.
std::uint64_t MaxFlow::Block(std::size_t source, std::size_t sink) {
  current_ = first_;
  path_.clear();
  std::uint64_t total = 0;
  std::size_t node = source;
  while (true) {
    if (node == sink) {
      total += Push();
      node = path_.empty() ? source : edges_[path_.back()].to;
      continue;
    }
    const std::size_t e = current_[node];
    if (e == kNone) {
      if (node == source) return total;
      node = edges_[path_.back() ^ 1].to;
      path_.pop_back();
      current_[node] = edges_[current_[node]].next;
      continue;
    }
    if (edges_[e].left > 0 && level_[edges_[e].to] == level_[node] + 1) {
      path_.push_back(e);
      node = edges_[e].to;
    } else {
      current_[node] = edges_[e].next;
    }
  }
}

std::uint64_t MaxFlow::Augment(std::size_t source, std::size_t sink) {
  std::uint64_t total = 0;
  while (FindLevels(source, sink)) total += Block(source, sink);
  return total;
}

}  // namespace wb
