#pragma once

#include <optional>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// A job with its tables in the order that the door gives them: tensors by name, layouts by
/// (group, rank), pieces by (tensor, box). A job that is so already is used as it is.
class OrderedJob {
 public:
  /// `job` outlives this.
  explicit OrderedJob(const Job& job);

  const Job& job() const { return copy_.has_value() ? *copy_ : *given_; }
  /// Turns ids of job() into ids of the job given.
  void Restore(Plan& plan) const;

 private:
  void RestorePools(Plan& plan) const;

  const Job* given_;
  std::optional<Job> copy_;        // only if the given one is out of order
  std::vector<TensorId> tensors_;  // of copy_, in order: their ids in given_
  std::vector<WorkerIndex> workers_;
};

}  // namespace wb
