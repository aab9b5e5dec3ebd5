#include "planner/solve/totals.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/model/plan_moves.h"

namespace wb {
namespace {

// Used once by FillTotals.
class Totals {
 public:
  Totals(const Job& job, const PoolRows& rows, Plan& plan)
      : job_(job), rows_(rows), plan_(plan), egress_(job.layouts.size(), 0) {}

  void Fill() && {
    plan_.bytes = 0;
    plan_.intra_node_bytes = 0;
    plan_.max_ingress_bytes = 0;
    for (PlanGroup& group : plan_.groups) {
      Add(group);
      plan_.bytes += group.bytes;
    }
    plan_.max_egress_bytes = 0;
    for (const std::uint64_t bytes : egress_) {
      plan_.max_egress_bytes = std::max(plan_.max_egress_bytes, bytes);
    }
  }

 private:
  void Add(PlanGroup& group) {
    group.bytes = 0;
    bool relayed = false;
    for (const Quota& quota : group.quotas) {
      group.bytes += quota.bytes;
      if (quota.relay.has_value()) {
        relayed = true;
      } else if (plan_.pools[quota.pool].local) {
        plan_.intra_node_bytes += quota.bytes;
      } else {
        egress_[quota.src.value()] += quota.bytes;
      }
    }
    std::vector<std::uint64_t> ingress(group.receivers.size());
    for (std::size_t r = 0; r < ingress.size(); ++r) {
      ingress[r] = rows_.nic_bytes(group.receivers[r].demand);
    }
    if (relayed || plan_.node_sharing) AddRelayed(group, ingress);
    for (const std::uint64_t bytes : ingress) {
      plan_.max_ingress_bytes = std::max(plan_.max_ingress_bytes, bytes);
    }
  }

  // What rollouts send: out of their NICs, or from within the node, where a quota had it enter one.
  void AddRelayed(PlanGroup& group, std::vector<std::uint64_t>& ingress) {
    std::vector<std::size_t> position(job_.layouts.size(), 0);
    for (std::size_t r = 0; r < group.receivers.size(); ++r) {
      position[group.receivers[r].worker.value()] = r;
    }
    ForEachPart(plan_, group, [&](const SlicePart& part) {
      if (!part.relayed) return;
      if (job_.layout(part.src).node != job_.layout(part.dst).node) {
        egress_[part.src.value()] += part.bytes();
        return;
      }
      plan_.intra_node_bytes += part.bytes();
      if (part.by_mate) {
        group.bytes += part.bytes();
      } else {
        ingress[position[part.dst.value()]] -= part.bytes();
      }
    });
  }

  const Job& job_;
  const PoolRows& rows_;
  Plan& plan_;
  std::vector<std::uint64_t> egress_;  // per worker
};

}  // namespace

void FillTotals(const Job& job, const PoolRows& rows, Plan& plan) {
  Totals(job, rows, plan).Fill();
}

}  // namespace wb
