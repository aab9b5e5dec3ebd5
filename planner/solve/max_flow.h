#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wb {

/// Maximum flow in a directed graph with integer capacities (Dinic's algorithm). Capacities may be
/// raised and the flow carried on from where it is. The sum of all capacities out of the source
/// fits 64 bits. The result depends on the order of the calls alone.
class MaxFlow {
 public:
  explicit MaxFlow(std::size_t nodes) : first_(nodes, kNone), level_(nodes) {}

  /// Returns the edge's number.
  std::size_t AddEdge(std::size_t from, std::size_t to, std::uint64_t capacity);
  void Raise(std::size_t edge, std::uint64_t more) { edges_[edge].left += more; }
  /// Sends as much more from `source` to `sink` as fits; returns how much that is.
  std::uint64_t Augment(std::size_t source, std::size_t sink);
  std::uint64_t flow(std::size_t edge) const { return edges_[edge ^ 1].left; }
  /// After Augment: whether more could still be brought from the source to `node`.
  bool reachable(std::size_t node) const { return level_[node] != kUnreached; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  static constexpr std::uint32_t kUnreached = UINT32_MAX;
  // Edges come in pairs: an edge and its way back, which has `left` = its flow.
  struct Edge {
    std::size_t to = 0;
    std::size_t next = kNone;  // of the same tail
    std::uint64_t left = 0;
  };
  bool FindLevels(std::size_t source, std::size_t sink);
  std::uint64_t Block(std::size_t source, std::size_t sink);
  std::uint64_t Push();

  std::vector<Edge> edges_;
  std::vector<std::size_t> first_;    // per node
  std::vector<std::uint32_t> level_;  // per node: distance from the source
  std::vector<std::size_t> current_;  // per node: next edge to try
  std::vector<std::size_t> path_;     // edges from the source
};

}  // namespace wb
