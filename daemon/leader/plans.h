#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/state/members.h"
#include "planner/lower/plan_part.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/refusal.h"

namespace wb {

/// What a plan means for one rollout group: its bytes, and per node the nodes it exchanges bytes
/// with. Nodes that only copy inside themselves are there with an empty set.
struct GroupMoves {
  std::uint64_t bytes = 0;
  std::map<std::string, std::set<std::string>> exchanges;
};

/// A solved plan with the job it was solved for. Immutable; shared by the versions that use it.
struct SolvedPlan {
  Job job;
  Plan plan;
  std::map<std::string, GroupMoves> groups;  // every rollout group that it serves
};

/// A plan from one rollout group to another, both whole: the first is taken for the trainers, whose
/// bytes it holds.
[[nodiscard]] std::variant<SolvedPlan, Refusals> SolveBetween(const JobMembers& members,
                                                              const std::string& sources,
                                                              const std::string& group);

/// Which groups a version can go to. A group that would be refused beside the trainers alone is a
/// misfit: its fault is its own, and the others have a plan without it.
struct Offering {
  std::shared_ptr<const SolvedPlan> plan;   // null: no group can be served
  Refusals refusals;                        // every reason why there is no plan
  std::map<std::string, Refusals> misfits;  // with the plan: the groups it leaves out, and why
};

/// The last offering of one job, kept for as long as its participants stay the same.
class PlanCache {
 public:
  /// Over all members of the trainer group and of `groups`; good until the next call. Solves only
  /// when a participant's session or epoch is not as it was, and then with the plan before as an
  /// input: groups that have not changed keep theirs.
  const Offering& Get(const JobMembers& members,
                      const std::string& trainers,
                      const std::set<std::string>& groups);
  /// Its participants are gone.
  void Forget();

 private:
  using Key = std::vector<std::pair<SessionId, Epoch>>;
  Key key_;
  Offering offering_;
};

}  // namespace wb
