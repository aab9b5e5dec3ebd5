#include "planner/model/plan_moves.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace wb {
namespace {

// Where a group's quotas stand: who sends the next bytes of each pool's row.
class Row {
 public:
  Row(const Plan& plan, const PlanGroup& group)
      : quotas_(group.quotas), next_(plan.pools.size()), left_(plan.pools.size(), 0) {
    for (std::size_t q = quotas_.size(); q-- > 0;) {
      next_[quotas_[q].pool] = q;
      left_[quotas_[q].pool] = quotas_[q].bytes;
    }
  }

  /// Whose quota the next bytes are of, and how many are left of it.
  struct Turn {
    const Quota* quota = nullptr;
    std::uint64_t bytes = 0;
  };
  Turn Next(std::uint32_t pool) {
    while (left_[pool] == 0) left_[pool] = quotas_[++next_[pool]].bytes;
    return {&quotas_[next_[pool]], left_[pool]};
  }
  void Take(std::uint32_t pool, std::uint64_t bytes) { left_[pool] -= bytes; }

 private:
  std::span<const Quota> quotas_;
  std::vector<std::size_t> next_;    // per pool: the quota in use
  std::vector<std::uint64_t> left_;  // per pool: bytes of it
};

// Which worker of another group has which turn.
class RelayTurns {
 public:
  explicit RelayTurns(const Plan& plan) : plan_(plan) {}
  WorkerIndex WorkerOf(std::uint32_t group, std::uint32_t turn) {
    const auto [known, fresh] = turns_.try_emplace(group);
    if (fresh) known->second = ByTurn(plan_.groups[group]);
    return known->second[turn]->worker;
  }

 private:
  const Plan& plan_;
  std::map<std::uint32_t, std::vector<const PlanReceiver*>> turns_;
};

// What parts may be joined within: one landing, out of one piece of the sender.
struct JoinGroup {
  std::uint32_t landing = 0;
  WorkerIndex src;
  std::uint32_t piece = 0;
  friend auto operator<=>(const JoinGroup&, const JoinGroup&) = default;
};

// Whether `a` comes before `b` when boxes that touch along `dim` are to be neighbours.
bool AlongBefore(const Box& a, const Box& b, std::size_t dim) {
  for (std::size_t d = 0; d < a.lo().size(); ++d) {
    if (d == dim) continue;
    const auto of_a = std::pair(a.lo()[d], a.hi()[d]);
    const auto of_b = std::pair(b.lo()[d], b.hi()[d]);
    if (of_a != of_b) return of_a < of_b;
  }
  return a.lo()[dim] < b.lo()[dim];
}

void JoinAlong(std::size_t dim, std::vector<Box>& boxes) {
  std::sort(boxes.begin(), boxes.end(),
            [&](const Box& a, const Box& b) { return AlongBefore(a, b, dim); });
  std::vector<Box> joined{boxes.front()};
  for (std::size_t i = 1; i < boxes.size(); ++i) {
    std::optional<Box> both = Join(joined.back(), boxes[i]);
    if (both.has_value()) {
      joined.back() = *std::move(both);
    } else {
      joined.push_back(boxes[i]);
    }
  }
  boxes = std::move(joined);
}

// Joins disjoint boxes that touch, along one dimension after the other.
void JoinBoxes(std::vector<Box>& boxes) {
  for (std::size_t dim = boxes.front().lo().size(); dim-- > 0 && boxes.size() > 1;) {
    JoinAlong(dim, boxes);
  }
}

// Makes moves of the parts that come in, tensor by tensor of one receiver after the other. Most
// parts stand alone; those of split sources are first joined.
class MoveMaker {
 public:
  explicit MoveMaker(const Plan& plan) : plan_(plan) {}

  void Add(const SlicePart& part) {
    if (part.dst != dst_ || part.slice->tensor != tensor_) {
      Finish();
      dst_ = part.dst;
      tensor_ = part.slice->tensor;
    }
    element_bytes_ = part.slice->element_bytes();
    const SplitSource* source = plan_.FindSplit(part.slice->source);
    cut_ = cut_ || part.bytes() < part.slice->bytes;
    if (source == nullptr) {
      moves_.push_back({part.src, part.dst, tensor_, part.box(), part.bytes()});
      return;
    }
    joinable_[{part.slice->landing, part.src, PieceOf(*source, part)}].push_back(part.box());
  }

  std::vector<Move> Take() && {
    Finish();
    return std::move(moves_);
  }

 private:
  // A relay has what it sends where it landed.
  static std::uint32_t PieceOf(const SplitSource& source, const SlicePart& part) {
    if (part.relayed) return 0;
    const auto holder = std::lower_bound(source.holders.begin(), source.holders.end(), part.src);
    return source.pieces[static_cast<std::size_t>(holder - source.holders.begin())];
  }

  // The last tensor's moves are whole: joins them, and puts them in order.
  void Finish() {
    for (auto& [group, boxes] : joinable_) {
      JoinBoxes(boxes);
      for (Box& box : boxes) {
        const std::uint64_t bytes = static_cast<std::uint64_t>(box.elements()) * element_bytes_;
        moves_.push_back({group.src, dst_, tensor_, std::move(box), bytes});
      }
    }
    if (cut_ || !joinable_.empty()) {
      std::sort(moves_.begin() + static_cast<std::ptrdiff_t>(begin_), moves_.end(),
                [](const Move& a, const Move& b) { return a.box < b.box; });
      joinable_.clear();
      cut_ = false;
    }
    begin_ = moves_.size();
  }

  const Plan& plan_;
  std::vector<Move> moves_;
  std::size_t begin_ = 0;  // of the current tensor's
  WorkerIndex dst_;
  TensorId tensor_;
  std::uint64_t element_bytes_ = 0;
  bool cut_ = false;  // a slice of the tensor comes in parts, which do not stand in order
  std::map<JoinGroup, std::vector<Box>> joinable_;
};

// Runs of one destination each, from the order of turns to that of ranks.
std::vector<Move> ByRank(const PlanGroup& group, std::vector<Move> moves) {
  std::map<WorkerIndex, std::pair<std::size_t, std::size_t>> runs;
  for (std::size_t begin = 0; begin < moves.size();) {
    std::size_t end = begin;
    while (end < moves.size() && moves[end].dst == moves[begin].dst) ++end;
    runs[moves[begin].dst] = {begin, end};
    begin = end;
  }
  std::vector<Move> ordered;
  ordered.reserve(moves.size());
  for (const PlanReceiver& receiver : group.receivers) {
    const auto run = runs.find(receiver.worker);
    if (run == runs.end()) continue;
    for (std::size_t i = run->second.first; i < run->second.second; ++i) {
      ordered.push_back(std::move(moves[i]));
    }
  }
  return ordered;
}

// Visits the parts of one receiver after the other.
class PartWalk {
 public:
  PartWalk(const Plan& plan,
           const PlanGroup& group,
           absl::FunctionRef<void(const SlicePart&)> visit)
      : plan_(plan), row_(plan, group), by_turn_(ByTurn(group)), relays_(plan), visit_(visit) {}

  void Receive(const PlanReceiver& receiver) {
    const Demand& demand = plan_.demands[receiver.demand];
    for (std::uint32_t i = demand.begin; i < demand.end; ++i) {
      const std::uint32_t pool = demand.pools[i - demand.begin];
      if (plan_.pools[pool].mate.has_value()) {
        const Box& box = plan_.slices[i].box;
        const WorkerIndex mate = by_turn_[*plan_.pools[pool].mate]->worker;
        visit_({&plan_.slices[i], mate, receiver.worker, box.lo()[0], box.hi()[0], true, true});
      } else {
        Take(plan_.slices[i], pool, receiver);
      }
    }
  }

 private:
  void Take(const Slice& slice, std::uint32_t pool, const PlanReceiver& receiver) {
    const std::uint64_t row_bytes = slice.row_bytes();
    std::int64_t lo = slice.box.lo()[0];
    while (lo < slice.box.hi()[0]) {
      const Row::Turn turn = row_.Next(pool);
      const std::int64_t rows =
          std::min(slice.box.hi()[0] - lo, static_cast<std::int64_t>(turn.bytes / row_bytes));
      row_.Take(pool, static_cast<std::uint64_t>(rows) * row_bytes);
      const bool relayed = turn.quota->relay.has_value();
      const WorkerIndex src =
          relayed ? relays_.WorkerOf(*turn.quota->relay, receiver.turn) : turn.quota->src;
      visit_({&slice, src, receiver.worker, lo, lo + rows, relayed, false});
      lo += rows;
    }
  }

  const Plan& plan_;
  Row row_;
  std::vector<const PlanReceiver*> by_turn_;
  RelayTurns relays_;
  absl::FunctionRef<void(const SlicePart&)> visit_;
};

}  // namespace

std::vector<const PlanReceiver*> ByTurn(const PlanGroup& group) {
  std::vector<const PlanReceiver*> order(group.receivers.size());
  for (const PlanReceiver& receiver : group.receivers) order[receiver.turn] = &receiver;
  return order;
}

Box SlicePart::box() const {
  Box box = slice->box;
  if (hi < box.hi()[0]) box = Split(box, 0, hi).first;
  if (lo > box.lo()[0]) box = Split(box, 0, lo).second;
  return box;
}

void ForEachPart(const Plan& plan,
                 const PlanGroup& group,
                 absl::FunctionRef<void(const SlicePart&)> visit) {
  PartWalk walk(plan, group, visit);
  for (const PlanReceiver* receiver : ByTurn(group)) walk.Receive(*receiver);
}

std::vector<Move> MovesOf(const Plan& plan,
                          const PlanGroup& group,
                          absl::FunctionRef<bool(WorkerIndex, WorkerIndex)> wanted) {
  MoveMaker maker(plan);
  ForEachPart(plan, group, [&](const SlicePart& part) {
    if (wanted(part.src, part.dst)) maker.Add(part);
  });
  return ByRank(group, std::move(maker).Take());
}

std::vector<Move> MovesOf(const Plan& plan, const PlanGroup& group) {
  return MovesOf(plan, group, [](WorkerIndex, WorkerIndex) { return true; });
}

std::size_t CountMoves(const Plan& plan) {
  std::size_t count = 0;
  for (const PlanGroup& group : plan.groups) count += MovesOf(plan, group).size();
  return count;
}

std::vector<Move> AllMoves(const Plan& plan) {
  std::vector<Move> all;
  for (const PlanGroup& group : plan.groups) {
    std::vector<Move> moves = MovesOf(plan, group);
    all.insert(all.end(), std::make_move_iterator(moves.begin()),
               std::make_move_iterator(moves.end()));
  }
  return all;
}

}  // namespace wb
