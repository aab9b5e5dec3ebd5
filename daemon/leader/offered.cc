#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "daemon/leader/publications.h"
#include "daemon/leader/waits.h"
#include "daemon/state/seconds.h"

namespace wb {

void Publications::Accept(const AcceptVersion& call, const std::string& node) {
  const Member* member = Speaker(call.session, node);
  if (member == nullptr) {
    state_.peers.Send(
        node, FinishReceive{call.session, call.version,
                            absl::FailedPreconditionError(absl::StrCat(
                                "session ", call.session, " is not registered with the leader")),
                            0, 0});
    return;
  }
  LeaderJob& job = *state_.JobOf(call.session);
  if (member->role() != Role::kRollout) {
    AnswerReceive(*member, call.version,
                  absl::InvalidArgumentError(absl::StrCat(
                      member->ToString(), " is a trainer: only rollout ranks receive")));
    return;
  }
  const Caller caller{call.session, node, state_.turns.Now(), {}};
  Publication* publication = job.Find(call.version);
  const bool opening = publication != nullptr && publication->state == PublicationState::kOpening;
  if (opening || (publication == nullptr && call.version > job.newest())) {
    job.accepts[member->name()] = {call.version, caller};
    return;
  }
  Delivery* delivery =
      publication == nullptr ? nullptr : publication->DeliveryTo(member->name().group);
  if (delivery != nullptr && delivery->state == DeliveryState::kWaiting &&
      !delivery->accepted.contains(member->name().rank)) {
    deliveries_.Accept({job, *publication, *delivery}, member->name().rank, caller);
    return;
  }
  AnswerReceive(*member, call.version, WhyNotReceivable(job, *member, call.version));
}

absl::Status Publications::WhyNotReceivable(LeaderJob& job,
                                            const Member& member,
                                            Version version) const {
  const std::string& group = member.name().group;
  Publication* publication = job.Find(version);
  if (publication == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("version ", version.value(), " is not on offer to ", group,
                     ": the newest of job ", job.name, " is ", job.newest().value()));
  }
  const Delivery* delivery = publication->DeliveryTo(group);
  if (delivery == nullptr) {
    if (publication->state == PublicationState::kFailed) return publication->status;
    return absl::FailedPreconditionError(
        absl::StrCat(group, " was not whole when version ", version.value(),
                     " was offered: it starts with the next offer"));
  }
  if (!delivery->status.ok()) return delivery->status;
  const std::string_view state = Name(delivery->state);
  return absl::FailedPreconditionError(
      absl::StrCat("version ", version.value(), " to ", group, " is ",
                   absl::string_view(state.data(), state.size()), " already"));
}

void Publications::Offer(LeaderJob& job,
                         Publication& publication,
                         const std::set<std::string>& groups) {
  const std::optional<GroupCensus> trainers = job.members.TrainerGroup();
  const Offering* made =
      job.plans.Get(state_.works, Participants::Of(job.members, trainers->group, groups),
                    [this, name = job.name] {
                      const auto found = state_.jobs.find(name);
                      if (found != state_.jobs.end()) ConsiderOffer(found->second);
                    });
  if (made == nullptr) return;
  const Offering& offering = *made;
  state_.refused.Note(job.name, offering);
  if (offering.plan == nullptr) {
    FailOpening(job, publication, ToStatus(offering.refusals));
    return;
  }
  publication.bound_bytes = offering.plan->plan.bound_bytes();
  Step(job.name, publication, PublicationState::kOffered, state_.turns.Now());
  late_.MakeWay(job, publication.version);
  ArmDeadline(job, publication);
  for (const auto& [name, caller] : publication.publishers) {
    Member* member = job.members.Find(caller.session);
    member->held_version = publication.version;
    member->memory = MemoryState::kValid;
  }
  for (const std::string& group : groups) {
    Delivery& delivery = publication.deliveries[group];
    delivery.group = group;
    delivery.sources = trainers->group;
    delivery.since = state_.turns.Now();
    if (const auto misfit = offering.misfits.find(group); misfit != offering.misfits.end()) {
      deliveries_.Fail({job, publication, delivery}, ToStatus(misfit->second));
      continue;
    }
    delivery.plan = offering.plan;
    delivery.bytes_planned = offering.plan->groups.at(group).bytes;
    for (const std::string& node : job.NodesOfGroup(group)) {
      state_.peers.Send(node, VersionOffered{job.name, group, publication.version});
    }
  }
  TakeEarlyAccepts(job, publication);
}

void Publications::TakeEarlyAccepts(LeaderJob& job, Publication& publication) {
  std::map<WorkerName, EarlyAccept> later;
  for (auto& [name, early] : std::exchange(job.accepts, {})) {
    const Member& member = *job.members.Find(name);
    if (early.version > publication.version) {
      later.emplace(name, std::move(early));
      continue;
    }
    const auto delivery = publication.deliveries.find(name.group);
    if (early.version == publication.version && delivery != publication.deliveries.end() &&
        delivery->second.state == DeliveryState::kWaiting) {
      deliveries_.Accept({job, publication, delivery->second}, name.rank, std::move(early.caller));
    } else {
      AnswerReceive(member, early.version, WhyNotReceivable(job, member, early.version));
    }
  }
  job.accepts = std::move(later);
}

bool Publications::RolloutLeft(LeaderJob& job, const Member& member, const absl::Status& left) {
  job.accepts.erase(member.name());
  late_.MemberLost(job, member, left);
  Publication* offered = job.InState(PublicationState::kOffered);
  if (offered == nullptr) return false;
  const auto delivery = offered->deliveries.find(member.name().group);
  if (delivery == offered->deliveries.end() || delivery->second.state == DeliveryState::kFailed ||
      CommitDecided(delivery->second.state)) {
    return false;
  }
  deliveries_.Fail({job, *offered, delivery->second}, left);
  return true;
}

void Publications::TrainerLeft(LeaderJob& job, const absl::Status& left) {
  if (Publication* opening = job.InState(PublicationState::kOpening); opening != nullptr) {
    FailOpening(job, *opening,
                Reworded(left, absl::StrCat("job ", job.name, " version ", opening->version.value(),
                                            ": ", left.message())));
  }
  if (Publication* offered = job.InState(PublicationState::kOffered); offered != nullptr) {
    FailUndecided(job, *offered, left);
  }
}

void Publications::FailUndecided(LeaderJob& job,
                                 Publication& publication,
                                 const absl::Status& status) {
  for (auto& [group, delivery] : publication.deliveries) {
    deliveries_.Fail({job, publication, delivery}, status);
  }
  OnDeliveryChanged(job, publication);
}

void Publications::OnDeliveryChanged(LeaderJob& job, Publication& publication) {
  ConsiderGo(job, publication);
  ConsiderRelease(job, publication);
  late_.Go(job);
  if (!publication.over()) return;
  // A late delivery may have ended: its source may be written, another be offered.
  if (Publication* offered = job.InState(PublicationState::kOffered); offered != nullptr) {
    ConsiderGo(job, *offered);
  }
  late_.Consider(job);
}

void Publications::ConsiderGo(LeaderJob& job, Publication& publication) {
  if (publication.state != PublicationState::kOffered) return;
  auto& deliveries = publication.deliveries;
  const bool waiting = std::any_of(deliveries.begin(), deliveries.end(), [](const auto& entry) {
    return entry.second.state == DeliveryState::kWaiting;
  });
  if (waiting && !publication.deadline_passed) return;
  std::set<std::string> ready;
  std::size_t gone = 0;
  for (const auto& [group, delivery] : deliveries) {
    if (delivery.state == DeliveryState::kPrepared) ready.insert(group);
    if (delivery.went.has_value()) ++gone;
  }
  if (!ready.empty() && gone == 0 && ready.size() < state_.options.min_groups) {
    FailTooFew(job, publication, ready);
    return;
  }
  for (const std::string& group : ready) {
    if (FindReader(job, group) != nullptr) continue;
    deliveries_.Go({job, publication, deliveries.at(group)});
  }
}

void Publications::FailTooFew(LeaderJob& job,
                              Publication& publication,
                              const std::set<std::string>& ready) {
  std::vector<std::string> others;
  for (const auto& [group, delivery] : publication.deliveries) {
    if (!delivery.status.ok()) others.emplace_back(delivery.status.message());
  }
  const absl::Status status = absl::FailedPreconditionError(absl::StrCat(
      "of at least ", state_.options.min_groups, " rollout groups (leader.min_groups) only ",
      absl::StrJoin(ready, ", "), " is ready: ", absl::StrJoin(others, "; ")));
  publication.status = absl::Status(
      status.code(), absl::StrCat("job ", job.name, " version ", publication.version.value(), ": ",
                                  status.message()));
  FailUndecided(job, publication, status);
}

void Publications::ConsiderRelease(LeaderJob& job, Publication& publication) {
  if (publication.state != PublicationState::kOffered) return;
  bool any_commits = false;
  for (const auto& [group, delivery] : publication.deliveries) {
    if (!delivery.over()) return;
    any_commits = any_commits || CommitDecided(delivery.state);
  }
  if (publication.deadline.has_value()) state_.turns.Cancel(*publication.deadline);
  Step(job.name, publication, any_commits ? PublicationState::kReleased : PublicationState::kFailed,
       state_.turns.Now());
  AnswerPublishers(job, publication);
  ConsiderOffer(job);
}

void Publications::ArmDeadline(LeaderJob& job, Publication& publication) {
  if (publication.deadline.has_value()) state_.turns.Cancel(*publication.deadline);
  publication.deadline_passed = false;
  const auto due = [this, name = job.name, version = publication.version,
                    state = publication.state] {
    const auto found = state_.jobs.find(name);
    if (found == state_.jobs.end()) return;
    Publication* waiting = found->second.Find(version);
    if (waiting == nullptr || waiting->state != state) return;
    waiting->deadline_passed = true;
    OnDeadline(found->second, *waiting);
  };
  publication.deadline = state_.turns.After(state_.options.start_timeout, due);
}

void Publications::OnDeadline(LeaderJob& job, Publication& publication) {
  if (publication.state == PublicationState::kOpening) {
    ConsiderOffer(job);
    return;
  }
  const auto now = state_.turns.Now();
  for (auto& [group, delivery] : publication.deliveries) {
    if (delivery.state != DeliveryState::kWaiting) continue;
    deliveries_.Fail({job, publication, delivery},
                     Late(absl::StrCat("not ready ", Seconds(now - publication.since),
                                       " after the version was offered"),
                          WaitsOf(job, delivery, now)));
  }
  OnDeliveryChanged(job, publication);
}

void Publications::AnswerPublishers(LeaderJob& job, Publication& publication) {
  const auto now = state_.turns.Now();
  auto went = now;
  std::vector<GroupOutcome> outcomes;
  for (const auto& [group, delivery] : publication.deliveries) {
    outcomes.push_back({group, delivery.status});
    if (delivery.went.has_value()) went = std::min(went, *delivery.went);
  }
  for (auto& [name, caller] : publication.publishers) {
    if (caller.answered.has_value()) continue;
    caller.answered = now;
    const Member* member = job.members.Find(caller.session);
    if (member == nullptr) continue;
    const auto said = publication.named.find(name);
    const Version version = said == publication.named.end() ? publication.version : said->second;
    const std::chrono::duration<double> wait = went - caller.since;
    const std::chrono::duration<double> move = now - went;
    state_.peers.Send(caller.node, FinishPublish{caller.session, version, publication.status,
                                                 outcomes, wait.count(), move.count()});
  }
}

void Publications::AnswerReceive(const Member& member,
                                 Version version,
                                 const absl::Status& status) {
  state_.peers.Send(member.node(), FinishReceive{member.session, version, status, 0, 0});
}

}  // namespace wb
