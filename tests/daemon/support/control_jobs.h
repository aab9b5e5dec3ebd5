#pragma once

#include <string>

#include "absl/status/status.h"

#include "daemon/state/cluster_messages.h"
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

/// What a worker says it holds when it joins.
struct HeldBefore {
  Version version = {};
  MemoryState memory = version == Version() ? MemoryState::kEmpty : MemoryState::kValid;
  AttemptId attempt = {};
};

/// A status's text.
[[nodiscard]] inline std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace wb::test
