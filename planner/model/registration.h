#pragma once

#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "planner/model/layout.h"
#include "planner/model/refusal.h"

namespace wb {

/// What one worker registers: its layout over its own table of tensors. Made by the door
/// (proto/convert); aliases are already resolved, `Piece::tensor` indexes `tensors`.
struct Registration {
  std::string job;
  // Ordered by name; those that pieces name, and those of which a rollout's param names empty boxes
  // alone.
  std::vector<Tensor> tensors;
  Layout layout;
  friend bool operator==(const Registration&, const Registration&) = default;
};

/// The whole job from its workers' registrations, in any order, or every reason why they do not
/// fit together: a tensor declared differently by two workers (both named), a rank twice, a gap in
/// ranks, a group with both roles, no or several trainer groups, no rollout group, two job names.
/// "overlap": "IDENTICAL" is the owners' promise: trainers that name the tensor must agree on it,
/// what rollouts say of it counts only where no trainer names the tensor. Workers that register
/// the same share one list of pieces in the job.
[[nodiscard]] std::variant<Job, Refusals> MakeJob(std::span<const Registration> registrations);

/// What a worker of the job registers: its layout over the tensors that its pieces name. `layout`
/// is one of the job's.
[[nodiscard]] Registration RegistrationOf(const Job& job, const Layout& layout);

}  // namespace wb
