#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/explain/nic_loads.h"
#include "planner/model/plan.h"

namespace wb {

/// What no plan can get around: the reason for Bounds::direct (the argument is in
/// planner/solve/bound.h).
struct Binding {
  enum class Kind : std::uint8_t {
    kNothing,  // nothing has to cross between nodes
    kIngress,  // each of `workers`, rollouts, wants `bytes` through its NIC: the bound
    kEgress,   // only `workers`, trainers, hold `bytes`: the bound is their share each, rounded up
  };
  Kind kind = Kind::kNothing;
  std::vector<WorkerIndex> workers;  // ascending
  std::uint64_t bytes = 0;
  friend bool operator==(const Binding&, const Binding&) = default;
};

/// `loads` are the plan's. Where both ways bind, it is ingress. Of several sets of trainers that
/// bind by themselves, it is the one with the first trainer.
[[nodiscard]] Binding FindBinding(const Plan& plan, std::span<const NicLoad> loads);

}  // namespace wb
