#include "daemon/leader/plans.h"

#include <utility>
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

/// What of the participants is solved together: those of `groups`, which are some of theirs.
std::vector<Registration> RegistrationsOf(const Participants& participants,
                                          const std::set<std::string>& groups) {
  std::vector<Registration> registrations;
  registrations.reserve(participants.workers.size());
  bool from_rollouts = false;
  for (const Participants::Worker& worker : participants.workers) {
    const std::string& group = worker.registration->layout.name.group;
    const bool sends = group == participants.sources;
    if (!sends && !groups.contains(group)) continue;
    Registration& registration = registrations.emplace_back(*worker.registration);
    if (!sends || registration.layout.role == Role::kTrainer) continue;
    registration.layout.role = Role::kTrainer;
    from_rollouts = true;
  }
  if (!from_rollouts) return registrations;
  // An element that one rank holds twice (tied params) has the same bytes in each.
  for (Registration& registration : registrations) {
    for (Tensor& tensor : registration.tensors) tensor.overlap_identical = true;
  }
  return registrations;
}

std::variant<SolvedPlan, Refusals> SolveFor(const Participants& participants,
                                            const std::set<std::string>& groups,
                                            const SolvedPlan* before) {
  std::variant<Job, Refusals> job = MakeJob(RegistrationsOf(participants, groups));
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

/// Without the tensors that are left unused: other groups may want them.
Refusals OfGroup(Refusals refusals) {
  std::erase_if(refusals, [](const Refusal& refusal) { return refusal.kind == "unused"; });
  return refusals;
}

/// Those groups that are refused beside the sources alone, each with its reasons.
std::map<std::string, Refusals> FindMisfits(const Participants& participants) {
  std::map<std::string, Refusals> misfits;
  for (const std::string& group : participants.groups) {
    auto solved = SolveFor(participants, {group}, nullptr);
    if (Refusals* refusals = std::get_if<Refusals>(&solved)) {
      misfits.emplace(group, OfGroup(std::move(*refusals)));
    }
  }
  return misfits;
}

/// The plan over the groups that fit. When the whole is refused although all fit, or none does,
/// no group is to blame, and the reasons are those of the whole.
Offering MakeOffering(const Participants& participants, const SolvedPlan* before) {
  const std::set<std::string>& groups = participants.groups;
  Offering offering;
  auto solved = SolveFor(participants, groups, before);
  if (const Refusals* whole = std::get_if<Refusals>(&solved); whole != nullptr) {
    offering.refusals = *whole;
    if (groups.size() == 1) return offering;
    std::map<std::string, Refusals> misfits = FindMisfits(participants);
    if (misfits.empty() || misfits.size() == groups.size()) return offering;
    std::set<std::string> fitting = groups;
    for (const auto& [group, why] : misfits) fitting.erase(group);
    solved = SolveFor(participants, fitting, before);
    if (std::holds_alternative<Refusals>(solved)) return offering;
    offering.refusals.clear();
    offering.misfits = std::move(misfits);
  }
  offering.plan = std::make_shared<const SolvedPlan>(std::move(std::get<SolvedPlan>(solved)));
  return offering;
}

}  // namespace

Participants Participants::Of(const JobMembers& members,
                              const std::string& sources,
                              const std::set<std::string>& groups) {
  Participants participants{sources, groups, {}};
  for (const auto& [name, member] : members.all()) {
    if (name.group != sources && !groups.contains(name.group)) continue;
    participants.workers.push_back({member.session, member.epoch, member.registration});
  }
  return participants;
}

PlanCache::Key PlanCache::KeyOf(const Participants& participants) {
  Key key;
  key.reserve(participants.workers.size());
  for (const Participants::Worker& worker : participants.workers) {
    key.emplace_back(worker.session, worker.epoch);
  }
  return key;
}

const Offering* PlanCache::Get(Works& works,
                               Participants participants,
                               const std::function<void()>& made) {
  Key key = KeyOf(participants);
  if (!kept_->key.empty() && key == kept_->key) return &kept_->offering;
  if (kept_->making_since.has_value()) return nullptr;
  kept_->making_since = works.Now();
  works.Begin([participants = std::move(participants), before = kept_->offering.plan,
               key = std::move(key), kept = std::weak_ptr(kept_),
               made](const Works::Report& report) {
    const auto offering = std::make_shared<Offering>(MakeOffering(participants, before.get()));
    report([offering, key, kept, made] {
      const std::shared_ptr<Kept> still = kept.lock();
      if (still == nullptr) return;
      *still = {key, std::move(*offering), std::nullopt};
      made();
    });
  });
  return nullptr;
}

}  // namespace wb
