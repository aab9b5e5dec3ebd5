#include "daemon/leader/plans.h"

#include <optional>
#include <span>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

#include "planner/model/plan_moves.h"
#include "planner/model/registration.h"
#include "planner/solve/planner.h"

namespace wb {
namespace {

// A job's nodes, numbered.
class Nodes {
 public:
  explicit Nodes(const Job& job) {
    absl::flat_hash_map<absl::string_view, std::uint32_t> numbers;
    for (const Layout& layout : job.layouts) {
      const auto [number, fresh] =
          numbers.try_emplace(layout.node, static_cast<std::uint32_t>(names_.size()));
      if (fresh) names_.push_back(&layout.node);
      of_worker_.push_back(number->second);
    }
  }
  std::uint32_t Of(WorkerIndex worker) const { return of_worker_[worker.value()]; }
  const std::string& name(std::uint32_t node) const { return *names_[node]; }

 private:
  std::vector<const std::string*> names_;
  std::vector<std::uint32_t> of_worker_;
};

GroupMoves MovesOfGroup(const Nodes& nodes, const Plan& plan, const PlanGroup& group) {
  absl::flat_hash_set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  ForEachPart(plan, group, [&](const SlicePart& part) {
    pairs.emplace(nodes.Of(part.src), nodes.Of(part.dst));
  });
  GroupMoves moves{group.bytes, {}};
  for (const auto& [from, to] : pairs) {
    std::set<std::string>& sends = moves.exchanges[nodes.name(from)];
    if (from == to) continue;
    sends.insert(nodes.name(to));
    moves.exchanges[nodes.name(to)].insert(nodes.name(from));
  }
  return moves;
}

std::map<std::string, GroupMoves> MovesByGroup(const Job& job, const Plan& plan) {
  const Nodes nodes(job);
  std::map<std::string, GroupMoves> groups;
  for (const PlanGroup& group : plan.groups) {
    groups.emplace(group.name, MovesOfGroup(nodes, plan, group));
  }
  return groups;
}

using Participants = std::vector<const Member*>;

Participants MembersOf(const JobMembers& members,
                       const std::string& trainers,
                       const std::set<std::string>& groups) {
  Participants participants;
  for (const auto& [name, member] : members.all()) {
    if (name.group == trainers || groups.contains(name.group)) participants.push_back(&member);
  }
  return participants;
}

std::variant<SolvedPlan, Refusals> SolveFor(std::span<const Registration> registrations,
                                            const SolvedPlan* before) {
  std::variant<Job, Refusals> job = MakeJob(registrations);
  if (Refusals* refusals = std::get_if<Refusals>(&job)) return std::move(*refusals);
  std::optional<PreviousPlan> previous;
  if (before != nullptr) previous.emplace(PreviousPlan{before->job, before->plan});
  std::variant<Plan, Refusals> plan = Solve(std::get<Job>(job), previous);
  if (Refusals* refusals = std::get_if<Refusals>(&plan)) return std::move(*refusals);
  SolvedPlan solved;
  solved.job = std::move(std::get<Job>(job));
  solved.plan = std::move(std::get<Plan>(plan));
  solved.groups = MovesByGroup(solved.job, solved.plan);
  return solved;
}

std::variant<SolvedPlan, Refusals> SolveFor(const Participants& participants,
                                            const SolvedPlan* before) {
  std::vector<Registration> registrations;
  registrations.reserve(participants.size());
  for (const Member* member : participants) registrations.push_back(*member->registration);
  return SolveFor(registrations, before);
}

/// Without the tensors that are left unused: other groups may want them.
Refusals OfGroup(Refusals refusals) {
  std::erase_if(refusals, [](const Refusal& refusal) { return refusal.kind == "unused"; });
  return refusals;
}

/// Those of `groups` that are refused beside the trainers alone, each with its reasons.
std::map<std::string, Refusals> FindMisfits(const JobMembers& members,
                                            const std::string& trainers,
                                            const std::set<std::string>& groups) {
  std::map<std::string, Refusals> misfits;
  for (const std::string& group : groups) {
    auto solved = SolveFor(MembersOf(members, trainers, {group}), nullptr);
    if (Refusals* refusals = std::get_if<Refusals>(&solved)) {
      misfits.emplace(group, OfGroup(std::move(*refusals)));
    }
  }
  return misfits;
}

/// The plan over the groups that fit. When the whole is refused although all fit, or none does,
/// no group is to blame, and the reasons are those of the whole.
Offering MakeOffering(const JobMembers& members,
                      const std::string& trainers,
                      const std::set<std::string>& groups,
                      const SolvedPlan* before) {
  Offering offering;
  auto solved = SolveFor(MembersOf(members, trainers, groups), before);
  if (const Refusals* whole = std::get_if<Refusals>(&solved); whole != nullptr) {
    offering.refusals = *whole;
    if (groups.size() == 1) return offering;
    std::map<std::string, Refusals> misfits = FindMisfits(members, trainers, groups);
    if (misfits.empty() || misfits.size() == groups.size()) return offering;
    std::set<std::string> fitting = groups;
    for (const auto& [group, why] : misfits) fitting.erase(group);
    solved = SolveFor(MembersOf(members, trainers, fitting), before);
    if (std::holds_alternative<Refusals>(solved)) return offering;
    offering.refusals.clear();
    offering.misfits = std::move(misfits);
  }
  offering.plan = std::make_shared<const SolvedPlan>(std::move(std::get<SolvedPlan>(solved)));
  return offering;
}

}  // namespace

std::variant<SolvedPlan, Refusals> SolveBetween(const JobMembers& members,
                                                const std::string& sources,
                                                const std::string& group) {
  std::vector<Registration> registrations;
  for (const Member* member : MembersOf(members, sources, {group})) {
    Registration& registration = registrations.emplace_back(*member->registration);
    if (member->name().group == sources) registration.layout.role = Role::kTrainer;
    // An element that one rank holds twice (tied params) has the same bytes in each.
    for (Tensor& tensor : registration.tensors) tensor.overlap_identical = true;
  }
  return SolveFor(registrations, nullptr);
}

const Offering& PlanCache::Get(const JobMembers& members,
                               const std::string& trainers,
                               const std::set<std::string>& groups) {
  Key key;
  for (const Member* member : MembersOf(members, trainers, groups)) {
    key.emplace_back(member->session, member->epoch);
  }
  if (!key_.empty() && key == key_) return offering_;
  offering_ = MakeOffering(members, trainers, groups, offering_.plan.get());
  key_ = std::move(key);
  return offering_;
}

void PlanCache::Forget() {
  key_ = Key();
  offering_ = Offering();
}

}  // namespace wb
