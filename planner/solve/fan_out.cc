#include "planner/solve/fan_out.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>

#include "planner/model/plan_moves.h"
#include "planner/solve/max_flow.h"

namespace wb {
namespace {

struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::uint64_t BytesOf(std::span<const RelayedBytes> relayed) {
  std::uint64_t bytes = 0;
  for (const RelayedBytes& part : relayed) bytes += part.end - part.begin;
  return bytes;
}

// `from` without `without`; both ordered, disjoint within themselves.
std::vector<Interval> Less(std::span<const Interval> from, std::span<const Interval> without) {
  std::vector<Interval> rest;
  for (Interval interval : from) {
    for (const Interval& hole : without) {
      if (hole.end <= interval.begin || hole.begin >= interval.end) continue;
      if (hole.begin > interval.begin) rest.push_back({interval.begin, hole.begin});
      interval.begin = std::min(hole.end, interval.end);
    }
    if (interval.begin < interval.end) rest.push_back(interval);
  }
  return rest;
}

std::vector<Interval> Common(std::span<const Interval> a, std::span<const Interval> b) {
  std::vector<Interval> common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) common.push_back(both);
    (a[i].end < b[j].end ? i : j) += 1;
  }
  return common;
}

// Groups that get the same rows.
struct Class {
  std::vector<std::uint32_t> sources;  // kept: they relay, and are not routed
  std::vector<std::uint32_t> routed;   // in the order in which they take
  /// (group, neighbour): gets all from a neighbour on the same nodes.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sharing;
};

// A group, and what of a row nobody has taken from it yet.
struct Source {
  std::uint32_t group = 0;
  std::vector<Interval> left;
};

// What a class gets of one pool's row.
struct ClassRow {
  const Class* groups = nullptr;
  std::uint32_t pool = 0;
  std::uint64_t bytes = 0;  // of the row
};

// Used once by ChooseRelays.
class FanOut {
 public:
  FanOut(const Job& job,
         const std::vector<bool>& kept,
         const PoolRows& rows,
         const EgressRoom& room,
         const Plan& plan)
      : job_(job), kept_(kept), rows_(rows), room_(room), plan_(plan) {}

  Relays Choose() && {
    FindClasses();
    FindRows();
    Relays relays;
    for (const ClassRow& row : class_rows_) Share(row, relays);
    if (room_.between_nodes) Relay(relays);
    return relays;
  }

 private:
  void Share(const ClassRow& row, Relays& relays) const {
    for (const auto& [group, neighbour] : row.groups->sharing) {
      relays[{row.pool, group}] = {{0, row.bytes, neighbour}};
    }
  }

  void Relay(Relays& relays) const {
    std::vector<std::uint64_t> least;
    for (const ClassRow& row : class_rows_) {
      Relays none;
      least.push_back(Take(row, 0, none));
    }
    const std::vector<std::uint64_t> direct = DirectBytes(least);
    for (std::size_t i = 0; i < class_rows_.size(); ++i) {
      Take(class_rows_[i], direct[i] - least[i], relays);
    }
  }

  void FindClasses() {
    std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> alike;
    for (std::uint32_t g = 0; g < plan_.groups.size(); ++g) {
      std::vector<std::uint32_t> demands;
      nodes_.emplace_back();
      for (const PlanReceiver* receiver : ByTurn(plan_.groups[g])) {
        demands.push_back(receiver->demand);
        nodes_.back().push_back(job_.layout(receiver->worker).node);
      }
      alike[std::move(demands)].push_back(g);
    }
    for (const auto& [demands, groups] : alike) {
      if (groups.size() > 1) classes_.push_back(MakeClass(groups));
    }
  }

  // Groups of the same nodes do not follow each other: they do not take from each other.
  Class MakeClass(const std::vector<std::uint32_t>& groups) const {
    Class made;
    std::map<std::vector<std::string_view>, std::vector<std::uint32_t>> by_nodes;
    for (const std::uint32_t group : groups) {
      if (kept_[group]) by_nodes[nodes_[group]].push_back(group);
    }
    std::vector<std::pair<std::size_t, std::uint32_t>> order;
    for (const std::uint32_t group : groups) {
      std::vector<std::uint32_t>& before = by_nodes[nodes_[group]];
      if (kept_[group]) {
        made.sources.push_back(group);
        continue;
      }
      if (plan_.node_sharing && !before.empty()) {
        made.sharing.emplace_back(group, before.front());
        continue;
      }
      order.emplace_back(before.size(), group);
      before.push_back(group);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [round, group] : order) made.routed.push_back(group);
    return made;
  }

  void FindRows() {
    std::map<std::uint32_t, const Class*> by_group;  // of one of its groups that are not kept
    for (const Class& groups : classes_) {
      if (!groups.routed.empty()) {
        by_group[groups.routed.front()] = &groups;
      } else if (!groups.sharing.empty()) {
        by_group[groups.sharing.front().first] = &groups;
      }
    }
    for (std::uint32_t pool = 0; pool < plan_.pools.size(); ++pool) {
      if (plan_.pools[pool].local) continue;
      for (const PoolRows::Row& row : rows_.rows(pool)) {
        const auto found = by_group.find(row.group);
        if (found != by_group.end()) class_rows_.push_back({found->second, pool, row.bytes});
      }
    }
  }

  // Of each class's row, what trainers send to all its groups together: as much as fits, and no
  // less than `least`. Nodes of the flow: source, sink, rows, senders.
  std::vector<std::uint64_t> DirectBytes(std::span<const std::uint64_t> least) const {
    const std::size_t senders = 2 + class_rows_.size();
    MaxFlow flow(senders + room_.load.size());
    std::vector<std::size_t> edges;
    for (std::size_t i = 0; i < class_rows_.size(); ++i) {
      const std::uint64_t most = class_rows_[i].bytes * class_rows_[i].groups->routed.size();
      edges.push_back(flow.AddEdge(0, 2 + i, least[i]));
      for (const std::uint32_t sender : room_.members[class_rows_[i].pool]) {
        flow.AddEdge(2 + i, senders + sender, most);
      }
    }
    for (std::size_t s = 0; s < room_.load.size(); ++s) {
      flow.AddEdge(senders + s, 1, room_.limit - std::min(room_.limit, room_.load[s]));
    }
    flow.Augment(0, 1);
    for (std::size_t i = 0; i < class_rows_.size(); ++i) {
      const std::uint64_t most = class_rows_[i].bytes * class_rows_[i].groups->routed.size();
      flow.Raise(edges[i], most - least[i]);
    }
    flow.Augment(0, 1);
    std::vector<std::uint64_t> direct;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      direct.push_back(std::max(least[i], flow.flow(edges[i])));
    }
    return direct;
  }

  // Has the groups of a class take a row, `spare` bytes of it from trainers though others have
  // them. Returns the bytes that trainers send.
  std::uint64_t Take(const ClassRow& row, std::uint64_t spare, Relays& relays) const {
    std::deque<Source> sources;
    for (const std::uint32_t group : row.groups->sources) {
      sources.push_back({group, LeftOfKept(row, group)});
    }
    std::uint64_t direct = 0;
    for (const std::uint32_t group : row.groups->routed) {
      std::vector<RelayedBytes> taken = Offers(row, group, sources);
      const std::uint64_t given = GiveBack(row, group, spare, taken);
      spare -= std::min(spare, given);
      for (const RelayedBytes& part : taken) MarkTaken(part, sources);
      direct += row.bytes - BytesOf(taken);
      if (!taken.empty()) relays.emplace(std::pair(row.pool, group), std::move(taken));
      while (!sources.empty() && sources.front().left.empty()) sources.pop_front();
      sources.push_back({group, {{0, row.bytes}}});
    }
    return direct;
  }

  // What no kept group takes from a kept group.
  std::vector<Interval> LeftOfKept(const ClassRow& row, std::uint32_t group) const {
    std::vector<Interval> left{{0, row.bytes}};
    for (const std::uint32_t other : row.groups->sources) {
      std::uint64_t at = 0;
      for (const Quota& quota : plan_.groups[other].quotas) {
        if (quota.pool != row.pool) continue;
        const Interval part{at, at + quota.bytes};
        if (quota.relay == group) left = Less(left, std::span(&part, 1));
        at = part.end;
      }
    }
    return left;
  }

  bool ShareNode(std::uint32_t a, std::uint32_t b) const {
    for (std::size_t turn = 0; turn < nodes_[a].size(); ++turn) {
      if (nodes_[a][turn] == nodes_[b][turn]) return true;
    }
    return false;
  }

  // What the group can take of the row, each byte from the earliest source that has it; ordered.
  std::vector<RelayedBytes> Offers(const ClassRow& row,
                                   std::uint32_t group,
                                   const std::deque<Source>& sources) const {
    std::vector<RelayedBytes> taken;
    std::vector<Interval> wanted{{0, row.bytes}};
    for (const Source& source : sources) {
      if (wanted.empty()) break;
      if (ShareNode(group, source.group)) continue;
      const std::vector<Interval> found = Common(wanted, source.left);
      for (const Interval& part : found) taken.push_back({part.begin, part.end, source.group});
      wanted = Less(wanted, found);
    }
    std::sort(taken.begin(), taken.end(),
              [](const RelayedBytes& a, const RelayedBytes& b) { return a.begin < b.begin; });
    return taken;
  }

  // Takes about `spare` bytes out of `taken`, from its front; returns how many.
  std::uint64_t GiveBack(const ClassRow& row,
                         std::uint32_t group,
                         std::uint64_t spare,
                         std::vector<RelayedBytes>& taken) const {
    const std::uint64_t before = BytesOf(taken);
    std::vector<RelayedBytes> rest;
    for (const RelayedBytes& part : taken) {
      const std::uint64_t bytes = part.end - part.begin;
      if (spare >= bytes) {
        spare -= bytes;
        continue;
      }
      const std::uint64_t begin =
          spare == 0 ? part.begin : BetweenSlices(row, group, part.begin + spare);
      spare = 0;
      if (begin < part.end) rest.push_back({std::max(begin, part.begin), part.end, part.from});
    }
    taken = std::move(rest);
    return before - BytesOf(taken);
  }

  // The nearest end of a slice at or before byte `at` of the row.
  std::uint64_t BetweenSlices(const ClassRow& row, std::uint32_t group, std::uint64_t at) const {
    std::uint64_t end = 0;
    std::uint64_t last = 0;
    rows_.ForEachSlice(row.pool, group, [&](const Slice& slice) {
      end += slice.bytes;
      if (end <= at) last = end;
    });
    return last;
  }

  static void MarkTaken(const RelayedBytes& part, std::deque<Source>& sources) {
    const auto source = std::find_if(sources.begin(), sources.end(),
                                     [&](const Source& s) { return s.group == part.from; });
    const Interval taken{part.begin, part.end};
    source->left = Less(source->left, std::span(&taken, 1));
  }

  const Job& job_;
  const std::vector<bool>& kept_;
  const PoolRows& rows_;
  const EgressRoom& room_;
  const Plan& plan_;
  std::vector<std::vector<std::string_view>> nodes_;  // per group, by turn
  std::vector<Class> classes_;
  std::vector<ClassRow> class_rows_;
};

}  // namespace

Relays ChooseRelays(const Job& job,
                    const std::vector<bool>& kept,
                    const PoolRows& rows,
                    const EgressRoom& room,
                    const Plan& plan) {
  return FanOut(job, kept, rows, room, plan).Choose();
}

}  // namespace wb
