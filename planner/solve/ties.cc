#include "planner/solve/ties.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/hash/hash.h"

namespace wb {
namespace {

// The hash decides only which tensors are compared, never the result.
std::size_t StorageHash(const Tensor& tensor, const PieceTable& pieces, TensorId id) {
  std::size_t hash = absl::HashOf(tensor.dtype, tensor.shape);
  for (const PieceRef ref : pieces.sources(id)) {
    const Piece& piece = pieces.piece(ref);
    hash = absl::HashOf(hash, ref.worker, piece.buffer, piece.offset_bytes);
  }
  return hash;
}

using Hashed = std::pair<std::size_t, TensorId>;

std::vector<Hashed> HashStorage(const Job& job, const PieceTable& pieces) {
  std::vector<Hashed> by_hash;
  by_hash.reserve(job.tensors.size());
  for (std::uint32_t t = 0; t < job.tensors.size(); ++t) {
    const TensorId id(t);
    if (!pieces.sources(id).empty())
      by_hash.emplace_back(StorageHash(job.tensor(id), pieces, id), id);
  }
  std::sort(by_hash.begin(), by_hash.end());
  return by_hash;
}

bool IsOneStorage(const Job& job, const PieceTable& pieces, TensorId a, TensorId b) {
  return job.tensor(a).dtype == job.tensor(b).dtype && job.tensor(a).shape == job.tensor(b).shape &&
         SameSources(pieces, a, b);
}

// Of tensors with one hash, the groups that have one storage.
std::vector<std::vector<TensorId>> GroupAlike(const Job& job,
                                              const PieceTable& pieces,
                                              std::span<const Hashed> alike) {
  std::vector<std::vector<TensorId>> groups;
  for (const auto& [hash, id] : alike) {
    const TensorId tensor = id;
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const std::vector<TensorId>& group) {
          return IsOneStorage(job, pieces, group.front(), tensor);
        });
    if (found == groups.end()) {
      groups.push_back({tensor});
    } else {
      found->push_back(tensor);
    }
  }
  return groups;
}

// Groups of tensors with one storage, each ordered, only those with more than one member; ordered
// by their first members.
std::vector<std::vector<TensorId>> StorageGroups(const Job& job, const PieceTable& pieces) {
  const std::vector<Hashed> by_hash = HashStorage(job, pieces);
  std::vector<std::vector<TensorId>> groups;
  for (std::size_t begin = 0; begin < by_hash.size();) {
    std::size_t end = begin + 1;
    while (end < by_hash.size() && by_hash[end].first == by_hash[begin].first) ++end;
    const std::span<const Hashed> alike(by_hash.data() + begin, end - begin);
    begin = end;
    if (alike.size() < 2) continue;
    for (std::vector<TensorId>& group : GroupAlike(job, pieces, alike)) {
      if (group.size() > 1) groups.push_back(std::move(group));
    }
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace

bool SameStorage(const Piece& a, const Piece& b) {
  if (a.buffer != b.buffer || a.offset_bytes != b.offset_bytes) return false;
  for (int dim = 0; dim < a.box.ndim(); ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    if (a.box.extent(dim) > 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

bool SameSources(const PieceTable& pieces, TensorId a, TensorId b) {
  const std::span<const PieceRef> of_a = pieces.sources(a);
  const std::span<const PieceRef> of_b = pieces.sources(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [&](PieceRef x, PieceRef y) {
                      return x.worker == y.worker && pieces.piece(x).box == pieces.piece(y).box &&
                             SameStorage(pieces.piece(x), pieces.piece(y));
                    });
}

TieTable FindTies(const Job& job, const PieceTable& pieces) {
  TieTable table;
  table.targets.reserve(job.tensors.size());
  for (std::uint32_t t = 0; t < job.tensors.size(); ++t) table.targets.emplace_back(t);
  for (const std::vector<TensorId>& group : StorageGroups(job, pieces)) {
    const auto wanted = [&](TensorId id) { return !pieces.destinations(id).empty(); };
    const auto target = std::find_if(group.begin(), group.end(), wanted);
    if (target == group.end()) continue;
    for (const TensorId id : group) {
      table.targets[id.value()] = *target;
      if (id != *target && wanted(id)) table.ties.push_back({id, *target});
    }
  }
  std::sort(table.ties.begin(), table.ties.end(),
            [](const Tie& a, const Tie& b) { return a.alias < b.alias; });
  return table;
}

}  // namespace wb
