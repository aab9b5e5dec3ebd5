#include "daemon/leader/plans.h"

#include "planner/model/registration.h"
#include "planner/solve/planner.h"

namespace wb {
namespace {

std::map<std::string, GroupMoves> MovesByGroup(const Job& job, const Plan& plan) {
  std::map<std::string, GroupMoves> groups;
  for (const Layout& layout : job.layouts) {
    if (layout.role == Role::kRollout) groups.try_emplace(layout.name.group);
  }
  std::map<std::pair<WorkerIndex, WorkerIndex>, std::uint64_t> pairs;
  for (const Move& move : plan.moves) pairs[{move.src, move.dst}] += move.bytes;
  for (const auto& [pair, bytes] : pairs) {
    const std::string& from = job.layout(pair.first).node;
    const Layout& destination = job.layout(pair.second);
    GroupMoves& group = groups[destination.name.group];
    group.bytes += bytes;
    std::set<std::string>& sends = group.exchanges[from];
    if (from == destination.node) continue;
    sends.insert(destination.node);
    group.exchanges[destination.node].insert(from);
  }
  return groups;
}

}  // namespace

std::variant<std::shared_ptr<const SolvedPlan>, Refusals> PlanCache::Get(
    const JobMembers& members, const std::string& trainers, const std::set<std::string>& groups) {
  Key key;
  std::vector<const Member*> participants;
  for (const auto& [name, member] : members.all()) {
    if (name.group != trainers && !groups.contains(name.group)) continue;
    key.emplace_back(member.session, member.epoch);
    participants.push_back(&member);
  }
  if (plan_ != nullptr && key == key_) return plan_;
  std::vector<Registration> registrations;
  registrations.reserve(participants.size());
  for (const Member* member : participants) registrations.push_back(*member->registration);
  std::variant<Job, Refusals> job = MakeJob(registrations);
  if (Refusals* refusals = std::get_if<Refusals>(&job)) return std::move(*refusals);
  std::variant<Plan, Refusals> plan = Solve(std::get<Job>(job));
  if (Refusals* refusals = std::get_if<Refusals>(&plan)) return std::move(*refusals);
  auto solved = std::make_shared<SolvedPlan>();
  solved->serial = ++solves_;
  solved->job = std::move(std::get<Job>(job));
  solved->plan = std::move(std::get<Plan>(plan));
  solved->groups = MovesByGroup(solved->job, solved->plan);
  key_ = std::move(key);
  plan_ = std::move(solved);
  return plan_;
}

}  // namespace wb
