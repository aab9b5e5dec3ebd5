#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/wbctl/contents/checkpoint.h"
#include "client/wbctl/contents/fill.h"
#include "planner/model/layout.h"
#include "planner/model/refusal.h"

namespace wb {

/// Elements as a checkpoint holds them, the same in every version. The checkpoint outlives it and
/// holds every tensor that is asked for (CheckpointMismatches has found nothing).
class CheckpointContents final : public Contents {
 public:
  explicit CheckpointContents(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  void Write(const Tensor& tensor,
             std::uint64_t begin,
             std::uint64_t count,
             std::span<std::byte> out) const override;

 private:
  const Checkpoint& checkpoint_;
};

/// Every reason why `job` cannot be filled from `checkpoint`: a tensor that the checkpoint does not
/// hold, or holds with another dtype or shape. Empty: it can.
[[nodiscard]] Refusals CheckpointMismatches(const Job& job, const Checkpoint& checkpoint);

/// Every reason why `checkpoint` cannot be gathered whole from each rollout group of `job`: a
/// tensor that no worker of the job names, or of which a group does not hold every element.
[[nodiscard]] Refusals ExportObstacles(const Job& job, const Checkpoint& checkpoint);

/// Whether the boxes together hold every element of a tensor of that shape.
[[nodiscard]] bool CoverWhole(const Index& shape, const std::vector<const Box*>& boxes);

}  // namespace wb
