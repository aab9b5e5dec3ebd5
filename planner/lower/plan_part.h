#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/registration.h"

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
  Fingerprint fingerprint;  // of the whole plan
  std::vector<PlanWorker> workers;
  std::vector<Tensor> tensors;
  std::vector<PlanTie> ties;
  std::vector<Move> moves;
  friend bool operator==(const PlanPart&, const PlanPart&) = default;
};

/// The part of `plan` for `node` and the rollout group `group`.
[[nodiscard]] PlanPart MakePlanPart(const Job& job,
                                    const Plan& plan,
                                    const std::string& group,
                                    const std::string& node);

/// The registered layout with its pieces' tensor ids translated to those of the part, by name and
/// by the part's ties; pieces of tensors the part does not name are dropped. FAILED_PRECONDITION
/// when dtype or shape of a tensor differ from the part's.
[[nodiscard]] absl::StatusOr<Layout> BindLayout(const Registration& registration,
                                                const PlanPart& part);

}  // namespace wb
