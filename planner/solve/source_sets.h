#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "planner/base/strong_id.h"
#include "planner/model/ids.h"

namespace wb {

/// Index into SourceSets.
using SourceSetId = StrongId<struct SourceSetTag, std::uint32_t>;

/// Sets of trainers that hold the same elements, each kept once: a few thousand even for 1 T
/// parameters. Ids count up from 0 in the order of first use. Of trainers that are alike, only the
/// first is named.
class SourceSets {
 public:
  /// `members` is ascending, unique and not empty.
  SourceSetId Intern(const std::vector<WorkerIndex>& members) {
    const auto [found, added] =
        ids_.try_emplace(members, SourceSetId(static_cast<std::uint32_t>(sets_.size())));
    if (added) sets_.push_back(members);
    return found->second;
  }
  std::span<const WorkerIndex> members(SourceSetId id) const { return sets_[id.value()]; }
  std::size_t size() const { return sets_.size(); }

 private:
  std::vector<std::vector<WorkerIndex>> sets_;
  absl::flat_hash_map<std::vector<WorkerIndex>, SourceSetId> ids_;
};

}  // namespace wb
