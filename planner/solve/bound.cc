#include "planner/solve/bound.h"

#include <algorithm>
#include <numeric>

#include "planner/base/divide_up.h"
#include "planner/solve/max_flow.h"
#include "planner/solve/water_filling.h"

namespace wb {
namespace {

// The flow of the argument in bound.h: node 0 is the source, 1 the sink, then classes, then
// senders.
class EgressFlow {
 public:
  EgressFlow(std::span<const EgressClass> classes, std::size_t senders)
      : classes_(classes), senders_(senders), flow_(2 + classes.size() + senders) {
    for (std::size_t c = 0; c < classes.size(); ++c) {
      flow_.AddEdge(0, 2 + c, classes[c].bytes);
      holder_edges_.emplace_back();
      for (const std::uint32_t holder : classes[c].holders) {
        holder_edges_.back().push_back(flow_.AddEdge(2 + c, SenderNode(holder), classes[c].bytes));
      }
    }
    for (std::size_t s = 0; s < senders; ++s) {
      sink_edges_.push_back(flow_.AddEdge(SenderNode(s), 1, 0));
    }
  }

  EgressOptimum Minimize() && {
    const std::uint64_t total =
        std::accumulate(classes_.begin(), classes_.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const EgressClass& c) { return sum + c.bytes; });
    if (total == 0) return Optimum(0);
    auto limit = DivideUp<std::uint64_t>(total, senders_);
    RaiseLimits(limit);
    std::uint64_t sent = flow_.Augment(0, 1);
    while (sent < total) {
      const std::uint64_t next = TightestLimit();
      RaiseLimits(next - limit);
      limit = next;
      sent += flow_.Augment(0, 1);
    }
    return Optimum(limit);
  }

 private:
  std::size_t SenderNode(std::size_t sender) const { return 2 + classes_.size() + sender; }

  void RaiseLimits(std::uint64_t more) {
    for (const std::size_t edge : sink_edges_) flow_.Raise(edge, more);
  }

  // V(U) / |U| of the set U that the minimum cut names.
  std::uint64_t TightestLimit() const {
    std::uint64_t count = 0;
    for (std::size_t s = 0; s < senders_; ++s) count += flow_.reachable(SenderNode(s)) ? 1 : 0;
    std::uint64_t bytes = 0;
    for (const EgressClass& c : classes_) {
      const bool inside =
          std::all_of(c.holders.begin(), c.holders.end(),
                      [&](std::uint32_t holder) { return flow_.reachable(SenderNode(holder)); });
      if (inside) bytes += c.bytes;
    }
    return DivideUp(bytes, count);
  }

  EgressOptimum Optimum(std::uint64_t max_bytes) const {
    EgressOptimum optimum{max_bytes, false, {}};
    for (const std::vector<std::size_t>& edges : holder_edges_) {
      optimum.shares.emplace_back();
      for (const std::size_t edge : edges) optimum.shares.back().push_back(flow_.flow(edge));
    }
    return optimum;
  }

  std::span<const EgressClass> classes_;
  std::size_t senders_;
  MaxFlow flow_;
  std::vector<std::vector<std::size_t>> holder_edges_;  // per class, per holder
  std::vector<std::size_t> sink_edges_;                 // per sender
};

// The classes' sets are laminar.
EgressOptimum FillUp(std::span<const EgressClass> classes, std::size_t senders) {
  std::vector<std::size_t> order(classes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return classes[a].holders.size() < classes[b].holders.size();
  });
  EgressOptimum optimum{0, true, std::vector<std::vector<std::uint64_t>>(classes.size())};
  std::vector<std::uint64_t> load(senders, 0);
  for (const std::size_t c : order) {
    const std::vector<std::uint32_t>& holders = classes[c].holders;
    std::vector<std::uint64_t> levels;
    levels.reserve(holders.size());
    for (const std::uint32_t holder : holders) levels.push_back(load[holder]);
    optimum.shares[c] = Pour(levels, classes[c].bytes);
    for (std::size_t i = 0; i < holders.size(); ++i) load[holders[i]] += optimum.shares[c][i];
  }
  for (const std::uint64_t bytes : load) optimum.max_bytes = std::max(optimum.max_bytes, bytes);
  return optimum;
}

}  // namespace

EgressOptimum MinimizeEgress(std::span<const EgressClass> classes, std::size_t senders) {
  std::vector<std::span<const std::uint32_t>> sets;
  for (const EgressClass& c : classes) sets.emplace_back(c.holders);
  if (IsLaminar(sets, senders)) return FillUp(classes, senders);
  return EgressFlow(classes, senders).Minimize();
}

}  // namespace wb
