#pragma once

#include <string>
#include <vector>

#include "planner/model/ids.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// A worker as a plan part names it.
struct PlanWorker {
  WorkerName name;
  std::string node;
  friend bool operator==(const PlanWorker&, const PlanWorker&) = default;
};

/// `alias` is written wherever `target` (index into PlanPart::tensors) is.
struct PlanTie {
  std::string alias;
  TensorId target;
  friend bool operator==(const PlanTie&, const PlanTie&) = default;
};

/// What one daemon needs of a plan for the delivery to one rollout group: the moves with a source
/// or a destination on its node, and the names they speak of. Ids in `moves` index `workers` and
/// `tensors` of the part. Plain value; moves keep the plan's order.
struct PlanPart {
  std::string job;
  std::string group;        // of the destinations
  Fingerprint fingerprint;  // of the plan for this group
  std::vector<PlanWorker> workers;
  std::vector<Tensor> tensors;
  std::vector<PlanTie> ties;
  std::vector<Move> moves;
  friend bool operator==(const PlanPart&, const PlanPart&) = default;
};

}  // namespace wb
