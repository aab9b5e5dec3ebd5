#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/explain/binding.h"
#include "planner/explain/busy_nics.h"
#include "planner/explain/move_survey.h"
#include "planner/explain/nic_loads.h"
#include "planner/explain/replica_use.h"
#include "planner/explain/wire_time.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// What NICs carry one way, in bytes.
struct Spread {
  std::uint64_t min = 0;
  double mean = 0;
  std::uint64_t max = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};

/// One of Bounds, and what the plan's fullest NIC carries over it; 1 where the bound is 0.
struct BoundRatio {
  std::string name;  // as the field of Bounds
  std::uint64_t bytes = 0;
  double max_over_bound = 1;
  friend bool operator==(const BoundRatio&, const BoundRatio&) = default;
};

/// What there is to say about a plan to a person. Pure value.
struct Explanation {
  MoveSurvey survey;
  Spread out;                    // over trainers' NICs
  Spread in;                     // over rollouts'
  std::size_t full_nics = 0;     // NICs that carry at least 99% of what the fullest does, one way
  std::vector<BusyNic> busiest;  // the five fullest
  std::vector<ReplicaUse> replicas;
  std::vector<BoundRatio> bounds;  // the one in force first
  std::optional<Binding> binding;  // of a plan in which rollouts pass on nothing
  std::optional<WireTime> wire;    // where rates are known
};

/// `plan` is the job's. Costs about as much as listing all moves.
[[nodiscard]] Explanation Explain(const Job& job,
                                  const Plan& plan,
                                  const std::optional<Rates>& rates);

}  // namespace wb
