#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/leader/state.h"

namespace wb {

/// The verb "resolve": what became of versions that rollout ranks hold in doubt, because the daemon
/// or the leader that would have told them is gone. Called inside turns only.
///
/// A version that this leader has decided is told as it was decided. Of one that an earlier leader
/// may have decided: any rank or daemon that knows of its commit settles it, and so does a group of
/// which every rank has staged it, for then nobody can have been told of a failure. A rank of which
/// it is sure that it has not staged it, or one that does not come back in time, fails it.
class Doubts {
 public:
  explicit Doubts(LeaderState& state) : state_(state) {}

  /// A worker was admitted, before it is told so: it may hold a version in doubt, or know what
  /// became of one.
  void OnAdmitted(LeaderJob& job,
                  const SessionId& session,
                  const std::vector<GroupCommit>& commits);

 private:
  /// What this leader's own table says of the member's version; nothing when it has no such
  /// version.
  static std::optional<bool> Recorded(const LeaderJob& job, const Member& member);
  static std::optional<bool> Evidence(const LeaderJob& job,
                                      const std::string& group,
                                      Version version);
  void Open(LeaderJob& job, const std::string& group, Version version);
  void Review(LeaderJob& job, const std::string& group);
  void OnDeadline(const std::string& job, const std::string& group, Version version);
  void Decide(LeaderJob& job, const std::string& group, Version version, bool committed);
  void Tell(Member& member, bool committed);

  LeaderState& state_;
};

}  // namespace wb
