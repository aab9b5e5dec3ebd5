#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/leader/works.h"
#include "daemon/state/members.h"
#include "planner/model/layout.h"
#include "planner/model/plan.h"
#include "planner/model/refusal.h"
#include "planner/model/registration.h"
#include "transport/loop/turns.h"

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

/// Who a plan is made for: all members of `sources` and of `groups`, all whole. `sources` are the
/// trainers, or a rollout group that is taken for them, whose bytes it holds. A value, for any
/// thread.
struct Participants {
  struct Worker {
    SessionId session;
    Epoch epoch;
    std::shared_ptr<const Registration> registration;
  };
  std::string sources;
  std::set<std::string> groups;
  std::vector<Worker> workers;  // by name

  static Participants Of(const JobMembers& members,
                         const std::string& sources,
                         const std::set<std::string>& groups);
};

/// Which groups a version can go to. A group that would be refused beside the trainers alone is a
/// misfit: its fault is its own, and the others have a plan without it.
struct Offering {
  std::shared_ptr<const SolvedPlan> plan;   // null: no group can be served
  Refusals refusals;                        // every reason why there is no plan
  std::map<std::string, Refusals> misfits;  // with the plan: the groups it leaves out, and why
};

/// The last offering of one job. It is made off the loop, one at a time. Loop-confined.
class PlanCache {
 public:
  /// The participants' offering, good until the next call; null while it is to be made. Then `made`
  /// runs as a turn once there is a newer one, which is theirs or that of others who were asked for
  /// before: look again. Made anew only when a participant's session or epoch is not as it was, and
  /// then with the plan before as an input: groups that have not changed keep theirs.
  const Offering* Get(Works& works, Participants participants, const std::function<void()>& made);
  /// While one is made: since when.
  std::optional<Turns::Clock::time_point> making_since() const { return kept_->making_since; }
  /// The participants are gone, or need it no more; one that is being made is dropped.
  void Forget() { kept_ = std::make_shared<Kept>(); }

 private:
  using Key = std::vector<std::pair<SessionId, Epoch>>;
  struct Kept {
    Key key;
    Offering offering;
    std::optional<Turns::Clock::time_point> making_since;
  };
  static Key KeyOf(const Participants& participants);

  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace wb
