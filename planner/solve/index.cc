#include "planner/solve/index.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "planner/model/box_tree.h"
#include "planner/solve/check.h"
#include "planner/solve/landings.h"

namespace wb {
namespace {

void Append(Refusals more, Refusals& refusals) {
  refusals.insert(refusals.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

// Walks the tensors in order. Used once by BuildIndex.
class Indexer {
 public:
  Indexer(const Job& job,
          const LayoutClasses& classes,
          const PieceTable& pieces,
          const TieTable& ties)
      : job_(job),
        classes_(classes),
        pieces_(pieces),
        ties_(ties),
        check_(job, classes, pieces),
        slices_(job.layouts.size()) {
    for (const Tie& tie : ties.ties) aliases_[tie.target].push_back(tie.alias);
    // There is at least a slice for each piece that has an owner.
    for (std::uint32_t w = 0; w < job.layouts.size(); ++w) {
      const Layout& layout = job.layouts[w];
      if (layout.role != Role::kRollout || !classes.is_first(WorkerIndex(w))) continue;
      slices_[w].reserve(layout.pieces.size());
    }
  }

  IndexResult Build() && {
    for (std::uint32_t t = 0; t < job_.tensors.size() && !full_; ++t) {
      if (ties_.target(TensorId(t)) == TensorId(t)) IndexTensor(TensorId(t));
    }
    if (!full_) check_.Finish(UnusedTensors(job_, pieces_, ties_));
    Append(std::move(check_).Take(), refusals_);
    if (refusals_.empty()) GatherSlices();
    return {std::move(index_), std::move(refusals_)};
  }

 private:
  void IndexTensor(TensorId tensor) {
    TensorSources sources = FindSources(job_, pieces_, tensor, index_.sets);
    const auto aliases = aliases_.find(tensor);
    TensorLandings landings = FindLandings(
        job_, pieces_, tensor,
        aliases == aliases_.end() ? std::span<const TensorId>() : std::span(aliases->second));
    if (!sources.refusals.empty()) {
      Append(std::move(sources.refusals), refusals_);
      check_.CheckAsDeclared(tensor, landings.landings);
    } else if (!landings.landings.empty()) {
      AppendSlices(tensor, std::move(sources.boxes), landings.landings);
    }
    Append(std::move(landings.refusals), refusals_);
    check_.FinishTensor(tensor);
  }

  void AppendSlices(TensorId tensor,
                    std::vector<SourceBox> sources,
                    const std::vector<Landing>& landings) {
    std::vector<Box> boxes;
    boxes.reserve(sources.size());
    for (const SourceBox& source : sources) boxes.push_back(source.box);
    const BoxTree tree(boxes);
    for (std::size_t begin = 0; begin < landings.size() && !full_;) {
      std::size_t end = begin + 1;
      while (end < landings.size() && landings[end].box == landings[begin].box) ++end;
      Slices(tensor, boxes, tree.Meeting(landings[begin].box),
             std::span(landings).subspan(begin, end - begin));
      begin = end;
    }
    index_.sources.insert(index_.sources.end(), std::make_move_iterator(sources.begin()),
                          std::make_move_iterator(sources.end()));
  }

  // `landings` have one box; `meeting` are the source boxes with elements of it.
  void Slices(TensorId tensor,
              const std::vector<Box>& sources,
              const std::vector<std::uint32_t>& meeting,
              std::span<const Landing> landings) {
    const Box& wanted = landings.front().box;
    const auto element_bytes = static_cast<std::uint64_t>(DtypeBytes(job_.tensor(tensor).dtype));
    std::int64_t covered = 0;
    for (const std::uint32_t source : meeting) {
      const Box box = *Intersect(sources[source], wanted);
      covered += box.elements();
      const std::uint64_t bytes = static_cast<std::uint64_t>(box.elements()) * element_bytes;
      for (const Landing& landing : landings) {
        check_.NoteServed(landing.dst);
        if (!Account(bytes, classes_.members(landing.dst).size())) return;
        slices_[landing.dst.value()].push_back(
            {tensor, static_cast<std::uint32_t>(index_.sources.size()) + source, landing.number,
             box, bytes});
      }
    }
    if (covered == wanted.elements()) return;
    for (const Landing& landing : landings) check_.NoteUncovered(tensor, landing);
  }

  // Counts one more slice, for `workers` that are alike; false when that is beyond a limit, which
  // is then told.
  bool Account(std::uint64_t bytes, std::size_t workers) {
    const std::uint64_t left = kMaxPlanBytes - bytes_;
    if (slice_count_ < kMaxSlices && bytes <= left / workers) {
      bytes_ += bytes * workers;
      ++slice_count_;
      return true;
    }
    full_ = true;
    refusals_.push_back({"limit", "", "",
                         absl::StrCat("the job has more than ", kMaxSlices, " slices or ",
                                      kMaxPlanBytes, " bytes to move")});
    return false;
  }

  // Slices were found tensor by tensor, and within each by landing.
  void GatherSlices() {
    index_.slices.reserve(slice_count_);
    for (std::uint32_t w = 0; w < slices_.size(); ++w) {
      if (job_.layouts[w].role != Role::kRollout || !classes_.is_first(WorkerIndex(w))) continue;
      std::vector<Slice>& own = slices_[w];
      const auto before = [](const Slice& a, const Slice& b) {
        return a.tensor != b.tensor ? a.tensor < b.tensor : a.box < b.box;
      };
      if (!std::is_sorted(own.begin(), own.end(), before)) {
        std::sort(own.begin(), own.end(), before);
      }
      const auto begin = static_cast<std::uint32_t>(index_.slices.size());
      index_.slices.insert(index_.slices.end(), std::make_move_iterator(own.begin()),
                           std::make_move_iterator(own.end()));
      index_.wanted.push_back(
          {WorkerIndex(w), begin, static_cast<std::uint32_t>(index_.slices.size())});
      own = {};
    }
  }

  const Job& job_;
  const LayoutClasses& classes_;
  const PieceTable& pieces_;
  const TieTable& ties_;
  absl::flat_hash_map<TensorId, std::vector<TensorId>> aliases_;
  CoverageCheck check_;
  SliceIndex index_;
  std::vector<std::vector<Slice>> slices_;  // per worker
  std::size_t slice_count_ = 0;
  std::uint64_t bytes_ = 0;  // of all moves
  Refusals refusals_;
  bool full_ = false;  // a limit is hit: no use to go on
};

}  // namespace

IndexResult BuildIndex(const Job& job,
                       const LayoutClasses& classes,
                       const PieceTable& pieces,
                       const TieTable& ties) {
  return Indexer(job, classes, pieces, ties).Build();
}

std::vector<TensorId> UnusedTensors(const Job& job,
                                    const PieceTable& pieces,
                                    const TieTable& ties) {
  std::vector<TensorId> unused;
  for (std::uint32_t t = 0; t < job.tensors.size(); ++t) {
    const TensorId id(t);
    if (!pieces.sources(id).empty() && pieces.destinations(ties.target(id)).empty()) {
      unused.push_back(id);
    }
  }
  return unused;
}

}  // namespace wb
