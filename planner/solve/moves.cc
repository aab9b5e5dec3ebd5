#include "planner/solve/moves.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace wb {
namespace {

// What parts may be joined within: one landing, out of one piece of the sender.
struct JoinGroup {
  TensorId tensor;
  WorkerIndex dst;
  std::uint32_t landing = 0;
  WorkerIndex src;
  std::uint32_t src_piece = 0;
  friend auto operator<=>(const JoinGroup&, const JoinGroup&) = default;
};

// A number for the sender's piece that the source box lies in, unique within (tensor, sender).
std::uint32_t SourcePiece(const SliceIndex& index, std::uint32_t source, WorkerIndex src) {
  const SourceBox& box = index.sources[source];
  if (box.holder_pieces.empty()) return source;
  const std::span<const WorkerIndex> holders = index.sets.members(box.holders);
  const auto at = std::lower_bound(holders.begin(), holders.end(), src);
  return box.holder_pieces[static_cast<std::size_t>(at - holders.begin())];
}

Box BoxOf(const SliceIndex& index, const RoutedPart& part) {
  Box box = index.slices[part.slice].box;
  if (part.hi < box.hi()[0]) box = Split(box, 0, part.hi).first;
  if (part.lo > box.lo()[0]) box = Split(box, 0, part.lo).second;
  return box;
}

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

// Puts moves together. Most parts are a whole slice between declared boxes and stand alone; parts
// of a split slice and slices of cut source boxes are first joined. Used once by MakeMoves.
class MoveMaker {
 public:
  MoveMaker(const Job& job, const SliceIndex& index) : job_(job), index_(index) {}

  std::vector<Move> Make(std::span<const RoutedPart> parts) && {
    drafts_.reserve(parts.size());
    for (const RoutedPart& part : parts) Add(part);
    for (auto& [group, boxes] : joinable_) {
      JoinBoxes(boxes);
      for (const Box& box : boxes) drafts_.push_back({group.dst, group.tensor, group.src, &box});
    }
    std::sort(drafts_.begin(), drafts_.end(), DraftBefore);
    std::vector<Move> moves;
    moves.reserve(drafts_.size());
    for (const Draft& draft : drafts_) moves.push_back(ToMove(draft));
    return moves;
  }

 private:
  // A move to come: small, because millions of them are sorted.
  struct Draft {
    WorkerIndex dst;
    TensorId tensor;
    WorkerIndex src;
    const Box* box = nullptr;  // of a slice, or of joinable_
  };

  static bool DraftBefore(const Draft& a, const Draft& b) {
    if (a.dst != b.dst) return a.dst < b.dst;
    if (a.tensor != b.tensor) return a.tensor < b.tensor;
    return *a.box < *b.box;
  }

  void Add(const RoutedPart& part) {
    const Slice& slice = index_.slices[part.slice];
    const bool whole = part.lo == slice.box.lo()[0] && part.hi == slice.box.hi()[0];
    if (whole && index_.sources[slice.source].holder_pieces.empty()) {
      drafts_.push_back({slice.dst, slice.tensor, part.src, &slice.box});
      return;
    }
    const JoinGroup group{slice.tensor, slice.dst, slice.landing, part.src,
                          SourcePiece(index_, slice.source, part.src)};
    joinable_[group].push_back(BoxOf(index_, part));
  }

  Move ToMove(const Draft& draft) const {
    const auto element_bytes =
        static_cast<std::uint64_t>(DtypeBytes(job_.tensor(draft.tensor).dtype));
    return {draft.src, draft.dst, draft.tensor, *draft.box,
            static_cast<std::uint64_t>(draft.box->elements()) * element_bytes};
  }

  const Job& job_;
  const SliceIndex& index_;
  std::vector<Draft> drafts_;
  std::map<JoinGroup, std::vector<Box>> joinable_;
};

}  // namespace

std::vector<Move> MakeMoves(const Job& job,
                            const SliceIndex& index,
                            std::span<const RoutedPart> parts) {
  return MoveMaker(job, index).Make(parts);
}

void FillTotals(const Job& job, Plan& plan) {
  std::vector<std::uint64_t> egress(job.layouts.size(), 0);
  std::vector<std::uint64_t> ingress(job.layouts.size(), 0);
  for (const Move& move : plan.moves) {
    plan.bytes += move.bytes;
    if (job.layout(move.src).node == job.layout(move.dst).node) {
      plan.intra_node_bytes += move.bytes;
      continue;
    }
    egress[move.src.value()] += move.bytes;
    ingress[move.dst.value()] += move.bytes;
  }
  for (std::size_t w = 0; w < egress.size(); ++w) {
    plan.max_egress_bytes = std::max(plan.max_egress_bytes, egress[w]);
    plan.max_ingress_bytes = std::max(plan.max_ingress_bytes, ingress[w]);
  }
}

}  // namespace wb
