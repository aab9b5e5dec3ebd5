#pragma once

#include <string>

#include "planner/model/registration.h"

namespace wb::test {

// The job that tests of the control plane speak of: "gqa", with one tensor w of FP32 [8, 8].
// Trainers hold blocks of rows, rollouts blocks of columns, so that every trainer rank sends to
// every rollout rank. Each worker has one buffer.

[[nodiscard]] Registration TrainerRank(int rank, int ranks, const std::string& node);
[[nodiscard]] Registration RolloutRank(const std::string& group,
                                       int rank,
                                       int ranks,
                                       const std::string& node);

}  // namespace wb::test
