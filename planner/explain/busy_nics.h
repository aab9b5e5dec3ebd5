#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/explain/nic_loads.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"

namespace wb {

/// Why a NIC carries what it does: tensors of one family, of which equally many trainers hold what
/// it carries.
struct Cause {
  std::string tensors;      // "model.layers.*.mlp.experts.*.*_proj.weight"
  std::size_t holders = 0;  // trainers that could have sent it
  std::uint64_t bytes = 0;
  friend bool operator==(const Cause&, const Cause&) = default;
};

/// One way of a NIC, and why it carries so much.
struct BusyNic {
  NicWay nic;
  std::uint64_t bytes = 0;
  std::size_t peers = 0;      // workers at the other ends
  std::size_t groups = 0;     // rollout groups that the bytes are for
  std::vector<Cause> causes;  // most bytes first, at most eight
  std::size_t other_causes = 0;
  std::uint64_t other_bytes = 0;  // of those
  friend bool operator==(const BusyNic&, const BusyNic&) = default;
};

/// A tensor's name with "*" for each part between dots that is a number, and "*_proj" for each that
/// says which projection of a layer it is.
[[nodiscard]] std::string TensorFamily(const std::string& name);

/// The `count` ways of NICs that carry most, most first, of equal ones the first; none that carries
/// nothing. `loads` are the plan's.
[[nodiscard]] std::vector<BusyNic> BusiestNics(const Job& job,
                                               const Plan& plan,
                                               std::span<const NicLoad> loads,
                                               std::size_t count);

}  // namespace wb
