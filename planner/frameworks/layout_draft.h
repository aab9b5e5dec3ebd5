#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "planner/frameworks/model_tensors.h"
#include "planner/model/layout.h"
#include "planner/model/refusal.h"

namespace wb {

/// Part of a tensor: [lo, hi) of one dimension, whole in the others. None where lo == hi.
struct Cut {
  TensorId tensor;
  std::size_t dim = 0;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
};

/// Part `index` of `parts` equal ones of [0, extent), which they divide.
[[nodiscard]] Cut EqualPart(
    TensorId tensor, std::size_t dim, std::int64_t extent, std::int64_t parts, std::int64_t index);

/// A layout in the making: params, each row-major in a buffer of its own, filled with parts of a
/// model's tensors. Extents are the model's, so that nothing overflows; see HfConfig.
class LayoutDraft {
 public:
  /// `model` outlives the draft.
  explicit LayoutDraft(const ModelTensors& model) : model_(model) {}

  [[nodiscard]] Cut Whole(TensorId tensor) const;

  /// A param that is the part alone.
  void Add(std::string name, const Cut& cut);
  /// A param that is the parts below each other; all are whole but for rows. At least one.
  void AddStacked(std::string name, std::span<const Cut> cuts);
  /// A param to be filled by Place.
  void AddParam(std::string name, Index shape, Dtype dtype);
  /// Puts the part at the index `at` of the param added last. `axes`: for each dimension of the
  /// tensor, the param's dimension that carries it.
  void Place(const Cut& cut, const Index& at, const Index& axes);
  /// The same, carried by the param's last dimensions, in order.
  void Place(const Cut& cut, const Index& at);

  /// All that was added. A rollout's params that nothing fills are marked local.
  [[nodiscard]] Layout Finish(Role role) &&;

 private:
  const ModelTensors& model_;
  std::vector<Buffer> buffers_;
  std::vector<Param> params_;
  std::vector<Piece> pieces_;
  std::vector<bool> filled_;  // per param
};

/// Layouts of the ranks of a group: role, rank and tables; group and node are the caller's.
using RankLayouts = std::vector<Layout>;

/// The most pieces of all layouts of a deployment that differ; more are refused (kind "limit"). To
/// lay them out and plan them takes about 1 KB each. Kimi-K2 over 4096 trainers has 250000.
inline constexpr std::size_t kMaxPieces = 4'000'000;

/// The refusal of more.
[[nodiscard]] Refusals TooManyPieces();

/// Puts the layouts of a group's ranks together, making each that differs once: ranks with equal
/// keys share their tables.
template <typename Key, typename Make>
[[nodiscard]] std::variant<RankLayouts, Refusals> MakeRanks(const std::vector<Key>& keys,
                                                            const Make& make) {
  std::map<Key, Layout> made;
  RankLayouts ranks;
  ranks.reserve(keys.size());
  std::size_t pieces = 0;
  for (const Key& key : keys) {
    const auto [entry, is_new] = made.try_emplace(key);
    if (is_new) {
      entry->second = make(key);
      pieces += entry->second.pieces.size();
    }
    if (pieces > kMaxPieces) return TooManyPieces();
    Layout& rank = ranks.emplace_back(entry->second);
    rank.name.rank = static_cast<std::int32_t>(ranks.size() - 1);
  }
  return ranks;
}

}  // namespace wb
