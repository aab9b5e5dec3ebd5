#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "planner/explain/nic_loads.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/refusal.h"
#include "planner/solve/planner.h"

namespace wb {

/// One way of a worker's NIC, in bytes; 0 where the worker is not there.
struct NicChange {
  WorkerName worker;
  Direction direction = Direction::kOut;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  friend bool operator==(const NicChange&, const NicChange&) = default;
};

/// What differs between two plans of one model; workers, groups and tensors are compared by name.
/// All lists are ordered by name, but for `nics`.
struct PlanDiff {
  std::vector<std::string> groups_added;
  std::vector<std::string> groups_removed;
  std::vector<std::string> groups_changed;    // another fingerprint: some node has another part
  std::vector<std::string> groups_unchanged;  // every node has the same part
  std::vector<std::string> tensors_added;
  std::vector<std::string> tensors_removed;
  std::vector<std::string> tensors_changed;  // another dtype or shape
  std::vector<std::string> workers_added;
  std::vector<std::string> workers_removed;
  std::size_t nics_changed = 0;  // ways of NICs that carry more or less
  std::vector<NicChange> nics;   // those that change most, at most five, the largest change first
  std::vector<NicLoad> loads_before;  // NicLoads of the plan before
  std::vector<NicLoad> loads_after;   // and of the one after
};

/// Refused (kind "diff") when the jobs are of two models: no tensor's name is in both, or most
/// tensors that are in both have two shapes.
[[nodiscard]] std::variant<PlanDiff, Refusals> DiffPlans(const PreviousPlan& before,
                                                         const Job& job,
                                                         const Plan& plan);

}  // namespace wb
