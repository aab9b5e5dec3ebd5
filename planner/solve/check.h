#pragma once

#include <vector>

#include "planner/model/layout.h"
#include "planner/model/refusal.h"
#include "planner/solve/landings.h"
#include "planner/solve/layout_classes.h"
#include "planner/solve/piece_table.h"
#include "planner/solve/ties.h"

namespace wb {

/// Collects what no trainer can serve. Used by BuildIndex, tensor after tensor in order. Told of
/// the first of workers that are alike, it speaks of all of them.
class CoverageCheck {
 public:
  CoverageCheck(const Job& job, const LayoutClasses& classes, const PieceTable& pieces)
      : job_(job), classes_(classes), pieces_(pieces), served_(job.layouts.size(), false) {}

  /// Something of what `dst` wants has an owner.
  void NoteServed(WorkerIndex dst) { served_[dst.value()] = true; }
  /// `landing` is not wholly in the trainers' pieces of `tensor`; call FinishTensor after the last.
  void NoteUncovered(TensorId tensor, const Landing& landing);
  /// Checks landings of a tensor whose owners conflict against its declared boxes as they are.
  void CheckAsDeclared(TensorId tensor, const std::vector<Landing>& landings);
  /// One reason a tensor, so that a list over hundreds of workers stays readable.
  void FinishTensor(TensorId tensor);
  /// Workers for which nothing is planned; then, if elements are missing, the tensors that trainers
  /// hold and nobody wants (kind "unused"): names that do not meet are told from both sides.
  void Finish(const std::vector<TensorId>& unused);

  Refusals Take() && { return std::move(refusals_); }

 private:
  struct Hole {
    WorkerIndex dst;
    Box box;
  };
  std::vector<Box> DeclaredBoxes(TensorId tensor) const;

  const Job& job_;
  const LayoutClasses& classes_;
  const PieceTable& pieces_;
  std::vector<bool> served_;  // per worker, if it is the first of its class
  std::vector<Hole> holes_;   // of the current tensor
  Refusals refusals_;
};

}  // namespace wb
