#include "planner/explain/move_survey.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "planner/lower/piece_block.h"
#include "planner/model/box_tree.h"
#include "planner/model/plan_moves.h"

namespace wb {
namespace {

// Where boxes lie by one list of pieces. Most tensors have one piece, or a few, in a list: those
// are looked at one by one; of more, a tree is built once.
class PlacesOf {
 public:
  explicit PlacesOf(const SharedList<Piece>& pieces) : pieces_(pieces.data(), pieces.size()) {}

  /// A place: buffer, and the block of its bytes.
  using Place = std::pair<std::uint32_t, ByteBlock>;

  /// Appends the places of `box` that are not in `places` yet, in the order of the pieces.
  void Append(TensorId tensor, const Box& box, std::vector<Place>& places) {
    const std::span<const Piece> own = PiecesOf(tensor);
    if (own.size() <= kFew) {
      for (const Piece& piece : own) Add(piece, box, places);
      return;
    }
    Tree& tree = trees_[tensor];
    if (tree.boxes == nullptr) {
      tree.boxes = std::make_unique<std::vector<Box>>();
      for (const Piece& piece : own) tree.boxes->push_back(piece.box);
      tree.tree = std::make_unique<const BoxTree>(*tree.boxes);
    }
    for (const std::uint32_t i : tree.tree->Meeting(box)) Add(own[i], box, places);
  }

 private:
  static constexpr std::size_t kFew = 8;
  struct Tree {
    std::unique_ptr<std::vector<Box>> boxes;
    std::unique_ptr<const BoxTree> tree;
  };

  std::span<const Piece> PiecesOf(TensorId tensor) {
    if (!looked_up_ || tensor_ != tensor) {
      const auto begin =
          std::partition_point(pieces_.begin(), pieces_.end(),
                               [&](const Piece& piece) { return piece.tensor < tensor; });
      const auto end = std::find_if(begin, pieces_.end(),
                                    [&](const Piece& piece) { return piece.tensor != tensor; });
      found_ = std::span<const Piece>(begin, end);
      tensor_ = tensor;
      looked_up_ = true;
    }
    return found_;
  }

  static void Add(const Piece& piece, const Box& box, std::vector<Place>& places) {
    if (!Contains(piece.box, box)) return;
    // Whether bytes are one run does not hang on an element's size, which is left out.
    Place place(piece.buffer, BlockOf(piece, box, 1));
    if (std::find(places.begin(), places.end(), place) == places.end()) {
      places.push_back(std::move(place));
    }
  }

  std::span<const Piece> pieces_;
  bool looked_up_ = false;
  TensorId tensor_;
  std::span<const Piece> found_;  // of tensor_
  absl::flat_hash_map<TensorId, Tree> trees_;
};

// Used once by SurveyMoves.
class Survey {
 public:
  Survey(const Job& job, const Plan& plan) : plan_(plan) {
    for (const Tie& tie : plan.ties) aliases_[tie.target].push_back(tie.alias);
    absl::flat_hash_map<const Piece*, std::size_t> numbers;  // lists that workers share
    for (const Layout& layout : job.layouts) {
      const auto [number, fresh] = numbers.try_emplace(layout.pieces.data(), places_.size());
      if (fresh) places_.emplace_back(layout.pieces);
      place_of_.push_back(number->second);
    }
  }

  MoveSurvey Make() && {
    for (const PlanGroup& group : plan_.groups) {
      for (const Move& move : MovesOf(plan_, group)) Add(move);
    }
    return survey_;
  }

 private:
  void Add(const Move& move) {
    ++survey_.moves;
    found_.clear();
    Append(move.src, move.tensor, move.box);
    found_.resize(std::min<std::size_t>(found_.size(), 1));  // a source is read in one place
    Count(move, survey_.source);
    found_.clear();
    Append(move.dst, move.tensor, move.box);
    if (!aliases_.empty()) AppendAliases(move);
    Count(move, survey_.destination);
  }

  void Append(WorkerIndex worker, TensorId tensor, const Box& box) {
    places_[place_of_[worker.value()]].Append(tensor, box, found_);
  }

  void AppendAliases(const Move& move) {
    const auto aliases = aliases_.find(move.tensor);
    if (aliases == aliases_.end()) return;
    for (const TensorId alias : aliases->second) Append(move.dst, alias, move.box);
  }

  void Count(const Move& move, RunShare& share) const {
    const bool one_run = found_.size() == 1 && found_.front().second.contiguous();
    (one_run ? share.contiguous_bytes : share.strided_bytes) += move.bytes;
  }

  const Plan& plan_;
  std::map<TensorId, std::vector<TensorId>> aliases_;
  std::vector<PlacesOf> places_;
  std::vector<std::size_t> place_of_;  // per worker, index into places_
  std::vector<PlacesOf::Place> found_;
  MoveSurvey survey_;
};

}  // namespace

MoveSurvey SurveyMoves(const Job& job, const Plan& plan) {
  return Survey(job, plan).Make();
}

}  // namespace wb
