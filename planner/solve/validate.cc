#include "planner/solve/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"
#include "planner/model/box_tree.h"
#include "planner/model/plan_moves.h"

namespace wb {
namespace {

class Validator {
 public:
  Validator(const Job& job, const Plan& plan, std::span<const Move> moves)
      : job_(job), plan_(plan), moves_(moves) {}

  absl::Status Check() {
    WB_RETURN_IF_ERROR(CheckTies());
    WB_RETURN_IF_ERROR(CheckMoves());
    WB_RETURN_IF_ERROR(CheckTiling());
    WB_RETURN_IF_ERROR(CheckRelays());
    return CheckTotals();
  }

 private:
  using Place = std::pair<WorkerIndex, TensorId>;

  static absl::Status Wrong(const std::string& text) { return absl::FailedPreconditionError(text); }

  std::string Describe(const Move& move) const {
    return absl::StrCat("move ", job_.layout(move.src).name.ToString(), " -> ",
                        job_.layout(move.dst).name.ToString(), " of ",
                        job_.tensor(move.tensor).name, " ", move.box.ToString());
  }

  TensorId Target(TensorId tensor) const {
    const auto tie = targets_.find(tensor);
    return tie == targets_.end() ? tensor : tie->second;
  }

  // (worker, box, buffer, offset, strides of dimensions longer than 1) of a source piece.
  using Stored = std::tuple<std::size_t, Box, std::uint32_t, std::uint64_t, Index>;

  static Stored StoredAt(std::size_t worker, const Piece& piece) {
    Index strides = piece.strides;
    for (int d = 0; d < piece.box.ndim(); ++d) {
      if (piece.box.extent(d) == 1) strides[static_cast<std::size_t>(d)] = 0;
    }
    return {worker, piece.box, piece.buffer, piece.offset_bytes, std::move(strides)};
  }

  std::set<Stored> Storage(TensorId tensor) const {
    std::set<Stored> storage;
    for (std::size_t w = 0; w < job_.layouts.size(); ++w) {
      if (job_.layouts[w].role != Role::kTrainer) continue;
      for (const Piece& piece : job_.layouts[w].pieces) {
        if (piece.tensor == tensor) storage.insert(StoredAt(w, piece));
      }
    }
    return storage;
  }

  absl::Status CheckTies() {
    for (const Tie& tie : plan_.ties) {
      const Tensor& alias = job_.tensor(tie.alias);
      const Tensor& target = job_.tensor(tie.target);
      if (alias.dtype != target.dtype || alias.shape != target.shape ||
          Storage(tie.alias) != Storage(tie.target)) {
        return Wrong(absl::StrCat("tie of ", alias.name, " to ", target.name,
                                  ": they are not one storage on every trainer"));
      }
      targets_[tie.alias] = tie.target;
    }
    return absl::OkStatus();
  }

  absl::Status CheckMoves() {
    for (std::size_t w = 0; w < job_.layouts.size(); ++w) {
      for (const Piece& piece : job_.layouts[w].pieces) {
        pieces_[{WorkerIndex(static_cast<std::uint32_t>(w)), Target(piece.tensor)}].push_back(
            piece.box);
      }
    }
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      const Move& move = moves_[i];
      WB_RETURN_IF_ERROR(CheckEnds(move));
      if (!InsidePiece(move.src, move) || !InsidePiece(move.dst, move)) {
        return Wrong(absl::StrCat(Describe(move), ": is not inside one piece of each end"));
      }
      const auto element_bytes =
          static_cast<std::uint64_t>(DtypeBytes(job_.tensor(move.tensor).dtype));
      if (move.bytes != static_cast<std::uint64_t>(move.box.elements()) * element_bytes) {
        return Wrong(absl::StrCat(Describe(move), ": says ", move.bytes, " bytes"));
      }
      if (i > 0 && !Before(moves_[i - 1], move)) {
        return Wrong(absl::StrCat(Describe(move), ": is out of order"));
      }
      landed_[{move.dst, move.tensor}].push_back(move.box);
      landed_by_[{move.dst, move.tensor}].push_back(i);
    }
    return absl::OkStatus();
  }

  // Trainers send to rollouts; with fan-out, rollouts also to rollouts on other nodes, with node
  // sharing, to those of their own.
  absl::Status CheckEnds(const Move& move) {
    const Layout& src = job_.layout(move.src);
    const Layout& dst = job_.layout(move.dst);
    const bool relays = plan_.fan_out || plan_.node_sharing;
    if (dst.role != Role::kRollout || (src.role == Role::kRollout && !relays)) {
      return Wrong(absl::StrCat(Describe(move), ": does not go from a trainer to a rollout"));
    }
    if (src.role == Role::kTrainer) return absl::OkStatus();
    if (src.node == dst.node && !plan_.node_sharing) {
      return Wrong(absl::StrCat(Describe(move), ": is relayed within node ", src.node));
    }
    if (src.node != dst.node && !plan_.fan_out) {
      return Wrong(absl::StrCat(Describe(move), ": is relayed between nodes"));
    }
    return absl::OkStatus();
  }

  // What a rollout passes on has come to it from trainers, by whatever way.
  absl::Status CheckRelays() {
    std::vector<std::size_t> relayed;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (job_.layout(moves_[i].src).role == Role::kRollout) relayed.push_back(i);
    }
    if (relayed.empty()) return absl::OkStatus();
    for (const auto& [place, boxes] : landed_) trees_.try_emplace(place, boxes);
    origin_.assign(moves_.size(), Origin::kUnknown);
    for (const std::size_t i : relayed) {
      if (!ComesFromTrainers(i)) {
        return Wrong(absl::StrCat(Describe(moves_[i]), ": waits for itself"));
      }
    }
    return absl::OkStatus();
  }

  // Depth first, as deep as chains are.
  bool ComesFromTrainers(std::size_t number) {
    const Move& move = moves_[number];
    if (job_.layout(move.src).role == Role::kTrainer) return true;
    if (origin_[number] != Origin::kUnknown) return origin_[number] == Origin::kTrainers;
    origin_[number] = Origin::kAsked;
    const auto tree = trees_.find({move.src, move.tensor});
    if (tree == trees_.end()) return false;
    for (const std::uint32_t before : tree->second.Meeting(move.box)) {
      if (!ComesFromTrainers(landed_by_.at(tree->first)[before])) return false;
    }
    origin_[number] = Origin::kTrainers;
    return true;
  }

  bool InsidePiece(WorkerIndex worker, const Move& move) const {
    const auto found = pieces_.find({worker, move.tensor});
    return found != pieces_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const Box& box) { return Contains(box, move.box); });
  }

  bool Before(const Move& a, const Move& b) const {
    const auto key = [&](const Move& move) {
      return std::tie(job_.layout(move.dst).name, job_.tensor(move.tensor).name, move.box.lo());
    };
    return key(a) < key(b);
  }

  // Disjoint boxes inside a piece whose elements add up to the piece's tile it.
  absl::Status CheckTiling() const {
    for (const auto& [place, boxes] : pieces_) {
      if (job_.layout(place.first).role != Role::kRollout) continue;
      const auto landed = landed_.find(place);
      const std::vector<Box> none;
      const std::vector<Box>& moved = landed == landed_.end() ? none : landed->second;
      WB_RETURN_IF_ERROR(CheckPlace(place, boxes, moved));
    }
    return absl::OkStatus();
  }

  absl::Status CheckPlace(const Place& place,
                          const std::vector<Box>& boxes,
                          const std::vector<Box>& moved) const {
    const std::string where = absl::StrCat(job_.layout(place.first).name.ToString(), ", tensor ",
                                           job_.tensor(place.second).name);
    const BoxTree tree(moved);
    for (const Box& move : moved) {
      if (tree.Meeting(move).size() == 1) continue;
      return Wrong(absl::StrCat(where, ": elements of ", move.ToString(), " move twice"));
    }
    for (const Box& box : boxes) {
      const absl::StatusOr<std::int64_t> elements = MovedInto(box, moved, tree);
      if (!elements.ok()) return Wrong(absl::StrCat(where, ": ", elements.status().message()));
      if (*elements == box.elements()) continue;
      return Wrong(absl::StrCat(where, ": ", *elements, " of ", box.elements(), " elements of ",
                                box.ToString(), " move"));
    }
    return absl::OkStatus();
  }

  // Elements that land in `box`, if every move lands wholly inside or outside.
  static absl::StatusOr<std::int64_t> MovedInto(const Box& box,
                                                const std::vector<Box>& moved,
                                                const BoxTree& tree) {
    std::int64_t elements = 0;
    for (const std::uint32_t i : tree.Meeting(box)) {
      if (!Contains(box, moved[i])) {
        return Wrong(absl::StrCat("a move crosses the edge of ", box.ToString()));
      }
      elements += moved[i].elements();
    }
    return elements;
  }

  absl::Status CheckTotals() const {
    std::uint64_t bytes = 0;
    std::uint64_t inside = 0;
    std::map<WorkerIndex, std::uint64_t> egress;
    std::map<WorkerIndex, std::uint64_t> ingress;
    for (const Move& move : moves_) {
      const bool same = job_.layout(move.src).node == job_.layout(move.dst).node;
      bytes += move.bytes;
      (same ? inside : egress[move.src]) += move.bytes;
      if (!same) ingress[move.dst] += move.bytes;
    }
    const std::uint64_t out = Largest(egress);
    const std::uint64_t in = Largest(ingress);
    if (bytes != plan_.bytes || inside != plan_.intra_node_bytes || out != plan_.max_egress_bytes ||
        in != plan_.max_ingress_bytes) {
      return Wrong(absl::StrCat("totals: moves add up to ", bytes, " bytes, ", inside,
                                " inside nodes, at most ", out, " out of and ", in, " into a NIC"));
    }
    if (plan_.bound_bytes() > std::max(out, in)) {
      return Wrong(absl::StrCat("bound ", plan_.bound_bytes(), " is above the plan's own maximum ",
                                std::max(out, in)));
    }
    return absl::OkStatus();
  }

  static std::uint64_t Largest(const std::map<WorkerIndex, std::uint64_t>& loads) {
    std::uint64_t largest = 0;
    for (const auto& [worker, bytes] : loads) largest = std::max(largest, bytes);
    return largest;
  }

  const Job& job_;
  const Plan& plan_;
  std::span<const Move> moves_;
  std::map<TensorId, TensorId> targets_;
  std::map<Place, std::vector<Box>> pieces_;  // ties resolved
  std::map<Place, std::vector<Box>> landed_;
  std::map<Place, std::vector<std::size_t>> landed_by_;  // numbers of the moves
  // For relays.
  enum class Origin : std::uint8_t { kUnknown, kAsked, kTrainers };
  std::map<Place, BoxTree> trees_;
  std::vector<Origin> origin_;  // per move
};

}  // namespace

absl::Status ValidatePlan(const Job& job, const Plan& plan) {
  return ValidateMoves(job, plan, AllMoves(plan));
}

absl::Status ValidateMoves(const Job& job, const Plan& plan, std::span<const Move> moves) {
  return Validator(job, plan, moves).Check();
}

}  // namespace wb
