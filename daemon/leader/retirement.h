#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "daemon/state/members.h"

namespace wb {

/// Which rollout groups of a job start and die again and again. A restart is a rank that was lost,
/// whether or not it said why, while its group was whole, and joins as another process; whole
/// groups that die together count once. A stream that was cut counts for nothing, and so does a
/// rank whose daemon drained. Two versions received in a row clear a group. With `retire_after`
/// restarts it is retired: its Joins are refused, and nobody waits for it. Loop-confined.
class Retirement {
 public:
  /// Of groups that were lost and are not retired, so many are remembered.
  static constexpr std::size_t kMaxGroups = 1024;

  /// `lost` have been removed from `members`.
  void NoteLost(const JobMembers& members, const std::vector<Member>& lost, const std::string& why);
  void NoteCommit(const std::string& group);
  /// Before a rank is let in. FAILED_PRECONDITION when its group is retired, or is now. 0: never.
  absl::Status NoteJoin(const Member& member, std::uint32_t retire_after);
  bool IsRetired(const std::string& group) const;
  /// "engine1 is retired", for each that is.
  std::vector<std::string> Retired() const;
  void Clear() { groups_.clear(); }

 private:
  struct Group {
    std::map<std::int32_t, Incarnation> lost;  // by rank, until one of them joins again
    std::string why;                           // the last loss
    std::uint32_t restarts = 0;
    std::uint32_t commits = 0;  // since the last loss
    bool retired = false;
  };
  std::map<std::string, Group> groups_;
};

}  // namespace wb
