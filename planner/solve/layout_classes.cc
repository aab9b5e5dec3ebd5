#include "planner/solve/layout_classes.h"

#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"

namespace wb {
namespace {

// Decides only which layouts are compared.
std::size_t PiecesHash(const Layout& layout) {
  std::size_t hash = absl::HashOf(layout.role, layout.pieces.size());
  for (const Piece& piece : layout.pieces) {
    hash = absl::HashOf(hash, piece.tensor, piece.box.lo(), piece.offset_bytes);
  }
  return hash;
}

}  // namespace

LayoutClasses::LayoutClasses(const Job& job) : members_(job.layouts.size()) {
  absl::flat_hash_map<std::pair<Role, const Piece*>, WorkerIndex> by_list;
  absl::flat_hash_map<std::size_t, std::vector<WorkerIndex>> by_hash;
  const auto find = [&](WorkerIndex worker) {
    const Layout& own = job.layout(worker);
    std::vector<WorkerIndex>& alike = by_hash[PiecesHash(own)];
    for (const WorkerIndex other : alike) {
      const Layout& layout = job.layout(other);
      if (layout.role == own.role && layout.pieces == own.pieces) return other;
    }
    alike.push_back(worker);
    return worker;
  };
  first_.reserve(job.layouts.size());
  for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
    const Layout& own = job.layouts[w];
    const auto [listed, fresh] = by_list.try_emplace({own.role, own.pieces.data()}, w);
    if (fresh) listed->second = find(WorkerIndex(w));
    first_.push_back(listed->second);
    members_[listed->second.value()].emplace_back(w);
  }
}

}  // namespace wb
