#include "planner/solve/moves.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

namespace wb {
namespace {

// A part and what it may be joined within.
struct Piecemeal {
  TensorId tensor;
  WorkerIndex dst;
  std::uint32_t landing = 0;
  WorkerIndex src;
  std::uint32_t src_piece = 0;
  Box box;

  auto group() const { return std::tie(dst, tensor, landing, src, src_piece); }
};

// A number for the sender's piece that the source box lies in, unique within (tensor, sender).
std::uint32_t SourcePiece(const SliceIndex& index, std::uint32_t source, WorkerIndex src) {
  const SourceBox& box = index.sources[source];
  if (box.holder_pieces.empty()) return source;
  const std::span<const WorkerIndex> holders = index.sets.members(box.holders);
  const auto at = std::lower_bound(holders.begin(), holders.end(), src);
  return box.holder_pieces[static_cast<std::size_t>(at - holders.begin())];
}

Piecemeal ToPiecemeal(const SliceIndex& index, const RoutedPart& part) {
  const Slice& slice = index.slices[part.slice];
  Box box = slice.box;
  if (part.hi < box.hi()[0]) box = Split(box, 0, part.hi).first;
  if (part.lo > box.lo()[0]) box = Split(box, 0, part.lo).second;
  return {
      slice.tensor,  slice.dst, slice.landing, part.src, SourcePiece(index, slice.source, part.src),
      std::move(box)};
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

// Joins disjoint boxes that touch, along one dimension after the other.
void JoinBoxes(std::vector<Box>& boxes) {
  for (std::size_t dim = boxes.front().lo().size(); dim-- > 0 && boxes.size() > 1;) {
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
}

void AppendMoves(const Job& job,
                 const Piecemeal& of,
                 std::vector<Box> boxes,
                 std::vector<Move>& moves) {
  if (boxes.size() > 1) JoinBoxes(boxes);
  const auto element_bytes = static_cast<std::uint64_t>(DtypeBytes(job.tensor(of.tensor).dtype));
  for (Box& box : boxes) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(box.elements()) * element_bytes;
    moves.push_back({of.src, of.dst, of.tensor, std::move(box), bytes});
  }
}

}  // namespace

std::vector<Move> MakeMoves(const Job& job,
                            const SliceIndex& index,
                            std::span<const RoutedPart> parts) {
  std::vector<Piecemeal> pieces;
  pieces.reserve(parts.size());
  for (const RoutedPart& part : parts) pieces.push_back(ToPiecemeal(index, part));
  std::sort(pieces.begin(), pieces.end(), [](const Piecemeal& a, const Piecemeal& b) {
    if (a.group() != b.group()) return a.group() < b.group();
    return a.box < b.box;
  });
  std::vector<Move> moves;
  moves.reserve(pieces.size());
  for (std::size_t begin = 0; begin < pieces.size();) {
    std::vector<Box> boxes;
    std::size_t end = begin;
    for (; end < pieces.size() && pieces[end].group() == pieces[begin].group(); ++end) {
      boxes.push_back(std::move(pieces[end].box));
    }
    AppendMoves(job, pieces[begin], std::move(boxes), moves);
    begin = end;
  }
  std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return std::tie(a.dst, a.tensor, a.box, a.src) < std::tie(b.dst, b.tensor, b.box, b.src);
  });
  return moves;
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
