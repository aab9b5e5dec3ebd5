#include "client/wbctl/plan/plan_table.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/wbctl/plan/explanation_table.h"
#include "client/wbctl/plan/readable.h"
#include "planner/model/plan_moves.h"

namespace wb {
namespace {

constexpr std::size_t kMaxPairs = 40;
constexpr std::size_t kMaxUnused = 20;

struct Pair {
  std::string src;
  std::string dst;
  bool same_node = false;
  std::uint64_t moves = 0;
  std::uint64_t bytes = 0;
};

// Most bytes first.
std::vector<Pair> Pairs(const Job& job, const Plan& plan) {
  std::map<std::pair<WorkerIndex, WorkerIndex>, Pair> by_workers;
  for (const PlanGroup& group : plan.groups) {
    for (const Move& move : MovesOf(plan, group)) {
      Pair& pair = by_workers[{move.src, move.dst}];
      ++pair.moves;
      pair.bytes += move.bytes;
    }
  }
  std::vector<Pair> pairs;
  for (auto& [workers, pair] : by_workers) {
    const Layout& src = job.layout(workers.first);
    const Layout& dst = job.layout(workers.second);
    pair.src = src.name.ToString();
    pair.dst = dst.name.ToString();
    pair.same_node = src.node == dst.node;
    pairs.push_back(std::move(pair));
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.bytes > b.bytes; });
  return pairs;
}

void WritePairs(const Job& job, const Plan& plan, std::ostream& out) {
  const std::vector<Pair> pairs = Pairs(job, plan);
  const std::size_t shown = std::min(pairs.size(), kMaxPairs);
  std::size_t width = 4;
  for (std::size_t i = 0; i < shown; ++i) {
    width = std::max({width, pairs[i].src.size(), pairs[i].dst.size()});
  }
  const auto column = static_cast<int>(width);
  out << absl::StreamFormat("\n%-*s  %-*s  %8s  %10s\n", column, "from", column, "to", "moves",
                            "size");
  for (std::size_t i = 0; i < shown; ++i) {
    const Pair& pair = pairs[i];
    out << absl::StreamFormat("%-*s  %-*s  %8d  %10s%s\n", column, pair.src, column, pair.dst,
                              pair.moves, ReadableBytes(pair.bytes),
                              pair.same_node ? "  same node" : "");
  }
  if (shown < pairs.size()) out << "and " << pairs.size() - shown << " more pairs\n";
}

void WriteUnused(const Job& job, const Plan& plan, std::ostream& out) {
  if (plan.unused.empty()) return;
  out << "\nnote: " << Count(plan.unused.size(), "tensor") << " of trainers "
      << (plan.unused.size() == 1 ? "is" : "are") << " wanted by no rollout:\n";
  const std::size_t shown = std::min(plan.unused.size(), kMaxUnused);
  for (std::size_t i = 0; i < shown; ++i) out << "  " << job.tensor(plan.unused[i]).name << '\n';
  if (shown < plan.unused.size()) out << "  and " << plan.unused.size() - shown << " more\n";
}

std::string Workers(const Job& job) {
  std::size_t trainers = 0;
  std::size_t rollouts = 0;
  std::set<std::string> engines;
  for (const Layout& layout : job.layouts) {
    (layout.role == Role::kTrainer ? trainers : rollouts) += 1;
    if (layout.role == Role::kRollout) engines.insert(layout.name.group);
  }
  return absl::StrCat(Count(trainers, "trainer"), " to ", Count(rollouts, "rollout worker"), " in ",
                      Count(engines.size(), "group"));
}

}  // namespace

void WritePlanTable(const ExplainedPlan& explained, bool summary, std::ostream& out) {
  const Job& job = explained.job;
  const Plan& plan = explained.plan;
  const auto line = [&](const char* name, const std::string& value) {
    WriteLine(out, name, value);
  };
  line("job", absl::StrCat(job.name, ": ", Workers(job)));
  line("tensors", absl::StrCat(job.tensors.size(), ", 0 refused, ", plan.unused.size(), " unused"));
  line("moves", absl::StrCat(explained.explanation.survey.moves, ", ", ReadableBytes(plan.bytes),
                             ", of which ", ReadableBytes(plan.intra_node_bytes), " inside nodes"));
  line("fullest NIC", absl::StrCat(ReadableBytes(plan.max_egress_bytes), " out, ",
                                   ReadableBytes(plan.max_ingress_bytes), " in"));
  if (!plan.ties.empty()) {
    line("tied", absl::StrCat(Count(plan.ties.size(), "tensor"), " in one storage with another"));
  }
  WriteExplanation(explained, out);
  if (!summary) WritePairs(job, plan, out);
  WriteUnused(job, plan, out);
}

}  // namespace wb
