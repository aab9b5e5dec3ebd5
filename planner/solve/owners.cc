#include "planner/solve/owners.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/model/box_tree.h"
#include "planner/solve/cut.h"
#include "planner/solve/ties.h"

namespace wb {
namespace {

// One tensor's source pieces, grouped by equal box. Used once by FindSources.
class Owners {
 public:
  Owners(const Job& job, const PieceTable& pieces, TensorId tensor)
      : job_(job), pieces_(pieces), tensor_(tensor) {
    const std::span<const PieceRef> refs = pieces.sources(tensor);
    refs_.assign(refs.begin(), refs.end());
    // Stable: pieces of one box stay ordered by worker.
    std::stable_sort(refs_.begin(), refs_.end(), [&](PieceRef a, PieceRef b) {
      return pieces_.piece(a).box < pieces_.piece(b).box;
    });
    for (std::size_t i = 0; i < refs_.size(); ++i) {
      if (i == 0 || pieces_.piece(refs_[i]).box != boxes_.back()) {
        boxes_.push_back(pieces_.piece(refs_[i]).box);
        begin_.push_back(i);
      }
    }
    begin_.push_back(refs_.size());
  }

  TensorSources Read(SourceSets& sets) && {
    const bool identical = job_.tensor(tensor_).overlap_identical;
    if (!identical) FindTwins();
    const bool overlap = FindOverlaps(identical);
    if (!sources_.refusals.empty()) return std::move(sources_);
    if (overlap) {
      CutAtoms(sets);
    } else {
      for (std::size_t box = 0; box < boxes_.size(); ++box) {
        sources_.boxes.push_back({tensor_, boxes_[box], sets.Intern(Holders(box)), {}});
      }
    }
    return std::move(sources_);
  }

 private:
  std::span<const PieceRef> Pieces(std::size_t box) const {
    return std::span(refs_).subspan(begin_[box], begin_[box + 1] - begin_[box]);
  }

  std::vector<WorkerIndex> Holders(std::size_t box) const {
    std::vector<WorkerIndex> holders;
    for (const PieceRef ref : Pieces(box)) {
      if (holders.empty() || holders.back() != ref.worker) holders.push_back(ref.worker);
    }
    return holders;
  }

  // Pieces of one worker with the same box, but not the same storage.
  void FindTwins() {
    for (std::size_t i = 1; i < refs_.size(); ++i) {
      if (refs_[i].worker != refs_[i - 1].worker) continue;
      const Piece& a = pieces_.piece(refs_[i - 1]);
      const Piece& b = pieces_.piece(refs_[i]);
      if (a.box == b.box && !SameStorage(a, b)) Refuse(refs_[i - 1], refs_[i]);
    }
  }

  // Whether any two distinct boxes overlap; tells them unless that is allowed.
  bool FindOverlaps(bool allowed) {
    if (boxes_.size() < 2) return false;
    const BoxTree tree(boxes_);
    bool found = false;
    for (std::size_t box = 0; box < boxes_.size() && !Enough() && !(found && allowed); ++box) {
      tree.Visit(boxes_[box], [&](std::size_t other) {
        if (other <= box) return true;
        found = true;
        if (!allowed) Refuse(Pieces(box).front(), Pieces(other).front());
        return !allowed && !Enough();
      });
    }
    return found;
  }

  bool Enough() const { return sources_.refusals.size() > kMaxConflictsTold; }

  std::string Describe(PieceRef ref) const {
    const Layout& layout = job_.layout(ref.worker);
    const Piece& piece = layout.pieces[ref.piece];
    return absl::StrCat("box ", piece.box.ToString(), " of ", layout.name.ToString(), " (param ",
                        layout.params[piece.param].name, ")");
  }

  void Refuse(PieceRef a, PieceRef b) {
    if (Enough()) return;
    const std::string& name = job_.tensor(tensor_).name;
    Refusal refusal{"conflict", name, job_.layout(a.worker).name.ToString(), ""};
    if (sources_.refusals.size() == kMaxConflictsTold) {
      refusal.text = absl::StrCat("tensor ", name, ": more conflicts than the ", kMaxConflictsTold,
                                  " told above");
    } else if (a.worker == b.worker) {
      refusal.text = absl::StrCat("tensor ", name, ": ", Describe(a), " and ", Describe(b),
                                  " hold the same elements, want each element of a trainer once");
    } else {
      refusal.text = absl::StrCat("tensor ", name, ": ", Describe(a), " and ", Describe(b),
                                  " overlap, want equal or disjoint boxes");
    }
    sources_.refusals.push_back(std::move(refusal));
  }

  void CutAtoms(SourceSets& sets) {
    const std::optional<std::vector<Atom>> atoms = CutIntoAtoms(boxes_, UsualWork(boxes_.size()));
    if (!atoms.has_value()) {
      const std::string& name = job_.tensor(tensor_).name;
      sources_.refusals.push_back(
          {"limit", name, "",
           absl::StrCat("tensor ", name, ": its ", boxes_.size(),
                        " overlapping source boxes cut each other into too many parts")});
      return;
    }
    for (const Atom& atom : *atoms) sources_.boxes.push_back(ToSource(atom, sets));
  }

  SourceBox ToSource(const Atom& atom, SourceSets& sets) const {
    std::vector<std::pair<WorkerIndex, std::uint32_t>> held;  // (holder, its distinct box)
    for (const std::uint32_t box : atom.holders) {
      for (const WorkerIndex worker : Holders(box)) held.emplace_back(worker, box);
    }
    std::sort(held.begin(), held.end());
    std::vector<WorkerIndex> holders;
    std::vector<std::uint32_t> holder_pieces;
    for (const auto& [worker, box] : held) {
      if (!holders.empty() && holders.back() == worker) continue;
      holders.push_back(worker);
      holder_pieces.push_back(box);
    }
    return {tensor_, atom.box, sets.Intern(holders), std::move(holder_pieces)};
  }

  const Job& job_;
  const PieceTable& pieces_;
  TensorId tensor_;
  std::vector<PieceRef> refs_;
  std::vector<Box> boxes_;          // distinct, ascending
  std::vector<std::size_t> begin_;  // refs_[begin_[b], begin_[b + 1]) have boxes_[b]
  TensorSources sources_;
};

}  // namespace

TensorSources FindSources(const Job& job,
                          const PieceTable& pieces,
                          TensorId tensor,
                          SourceSets& sets) {
  if (pieces.sources(tensor).empty()) return {};
  return Owners(job, pieces, tensor).Read(sets);
}

}  // namespace wb
