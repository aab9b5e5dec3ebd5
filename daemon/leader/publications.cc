#include "daemon/leader/publications.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "daemon/leader/waits.h"
#include "daemon/state/seconds.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

std::string Title(const LeaderJob& job, Version version) {
  return absl::StrCat("job ", job.name, " version ", version.value());
}

/// Why a worker that has given up does not hear more.
std::string GaveUp(const Member& member, const GiveUpVersion& call) {
  return absl::StrCat(member.ToString(), " gave up version ", call.version.value(), ": ",
                      call.reason);
}

absl::Status CheckNotPublishing(LeaderJob& job, const Member& member) {
  for (const PublicationState state : {PublicationState::kOpening, PublicationState::kOffered}) {
    const Publication* active = job.InState(state);
    if (active == nullptr) continue;
    const auto caller = active->publishers.find(member.name());
    if (caller != active->publishers.end() && caller->second.session == member.session) {
      return absl::FailedPreconditionError(absl::StrCat(
          member.ToString(), " is already publishing version ", active->version.value()));
    }
  }
  return absl::OkStatus();
}

/// Whether a failed round was about `version` for a rank that has not heard of its end: as its
/// number, which is spent, or as what a rank said, which a round that comes later may be about.
bool IsNews(const Publication& failed, const Member& member, Version version) {
  const auto caller = failed.publishers.find(member.name());
  if (failed.version == version) {
    return caller == failed.publishers.end() || caller->second.session != member.session;
  }
  return caller == failed.publishers.end() &&
         std::any_of(failed.named.begin(), failed.named.end(),
                     [&](const auto& entry) { return entry.second == version; });
}

/// Who is there when a version wants to be offered.
struct Attendance {
  bool all_published = false;        // every rank of a whole trainer group has
  std::set<std::string> whole;       // rollout groups
  std::vector<std::string> partial;  // those that are not, and required ones, in words
  std::vector<std::string> retired;  // likewise; not waited for
};

Attendance TakeAttendance(const LeaderJob& job, const Publication& opening) {
  Attendance attendance;
  for (const GroupCensus& census : job.members.Groups()) {
    if (census.role == Role::kTrainer) {
      attendance.all_published = census.whole() && opening.publishers.size() ==
                                                       static_cast<std::size_t>(census.registered);
    } else if (census.whole()) {
      attendance.whole.insert(census.group);
    } else if (!job.retirement.IsRetired(census.group)) {
      attendance.partial.push_back(census.ToString());
    }
  }
  for (const std::string& group : AbsentRequired(job, opening)) {
    attendance.partial.push_back(absl::StrCat("required group ", group, " is not registered"));
  }
  attendance.retired = job.retirement.Retired();
  return attendance;
}

/// Why a version cannot be offered to the groups that are whole, although the time is over.
absl::Status WhyNotOffered(const Publication& opening,
                           const Attendance& attendance,
                           std::uint32_t min_groups,
                           const std::string& late) {
  const std::set<std::string>& whole = attendance.whole;
  std::string text;
  if (whole.empty()) {
    text = "no rollout group is whole";
  } else if (whole.size() < min_groups) {
    text = absl::StrCat("of at least ", min_groups, " rollout groups (leader.min_groups) only ",
                        absl::StrJoin(whole, ", "), " is whole");
  } else {
    const auto& required = opening.options.required_groups;
    const auto missing =
        std::find_if(required.begin(), required.end(),
                     [&](const std::string& group) { return !whole.contains(group); });
    if (missing == required.end()) return absl::OkStatus();
    text = absl::StrCat("required group ", *missing, " is not whole");
  }
  std::vector<std::string> absent = attendance.partial;
  absent.insert(absent.end(), attendance.retired.begin(), attendance.retired.end());
  std::string missing = absl::StrJoin(absent, "; ");
  if (missing.empty()) missing = whole.empty() ? "none is registered" : "no other is registered";
  return absl::FailedPreconditionError(
      absl::StrCat(text, " ", late, " after all trainer ranks published: ", missing));
}

/// "engine0,engine1", or "all".
std::string Required(const PublishOptions& options) {
  return options.required_groups.empty() ? "all" : absl::StrJoin(options.required_groups, ",");
}

}  // namespace

const Member* Publications::Speaker(const SessionId& session, const std::string& node) {
  const LeaderJob* job = state_.JobOf(session);
  const Member* member = job == nullptr ? nullptr : job->members.Find(session);
  if (member != nullptr && member->node() == node) return member;
  ++state_.stale_messages;
  return nullptr;
}

void Publications::Publish(const PublishVersion& call, const std::string& node) {
  const Member* member = Speaker(call.session, node);
  const auto refuse = [&](const absl::Status& status) {
    state_.peers.Send(node, FinishPublish{call.session, call.version, status, {}, 0, 0});
  };
  if (member == nullptr) {
    refuse(absl::FailedPreconditionError(
        absl::StrCat("session ", call.session, " is not registered with the leader")));
    return;
  }
  LeaderJob& job = *state_.JobOf(call.session);
  if (const absl::Status status = RefusePublish(job, *member, call.version); !status.ok()) {
    refuse(status);
    return;
  }
  Publication* opening = job.InState(PublicationState::kOpening);
  Publication& publication = opening != nullptr ? *opening : OpenVersion(job, call);
  Caller& caller = publication.publishers[member->name()];
  caller = {call.session, node, state_.turns.Now(), {}};
  if (call.snapshot_seconds.has_value()) caller.snapshot.emplace(*call.snapshot_seconds);
  if (publication.version != call.version) {
    publication.named[member->name()] = call.version;
    RefuseRound(job, publication);
    return;
  }
  if (publication.options.required_groups != call.options.required_groups) {
    FailOpening(job, publication,
                absl::InvalidArgumentError(absl::StrCat(
                    Title(job, call.version),
                    ": trainer ranks require different rollout groups: ", member->name().ToString(),
                    " ", Required(call.options), ", the others ", Required(publication.options))));
    return;
  }
  ConsiderOffer(job);
}

absl::Status Publications::RefusePublish(LeaderJob& job, const Member& member, Version version) {
  if (member.role() != Role::kTrainer) {
    return absl::InvalidArgumentError(
        absl::StrCat(member.ToString(), " is a rollout: only trainer ranks publish"));
  }
  if (version == Version()) {
    return absl::InvalidArgumentError("version 0 means none: the first version is 1 or more");
  }
  WB_RETURN_IF_ERROR(CheckNotPublishing(job, member));
  const Publication* opening = job.InState(PublicationState::kOpening);
  if (opening != nullptr && opening->version == version) return absl::OkStatus();
  WB_RETURN_IF_ERROR(WhyRoundFailed(job, member, version));
  if (opening != nullptr || version > job.newest()) return absl::OkStatus();
  std::string text = absl::StrCat("version ", version.value(), " is not above ",
                                  job.newest().value(), " of job ", job.name);
  if (const Publication* spent = job.Find(version); spent != nullptr && !spent->status.ok()) {
    absl::StrAppend(&text, "; it failed: ", spent->status.message());
  }
  return absl::InvalidArgumentError(text);
}

absl::Status Publications::WhyRoundFailed(LeaderJob& job,
                                          const Member& member,
                                          Version version) const {
  const auto failed =
      std::find_if(job.publications.rbegin(), job.publications.rend(), [&](const auto& entry) {
        return entry.second.state == PublicationState::kFailed &&
               IsNews(entry.second, member, version);
      });
  if (failed == job.publications.rend()) return absl::OkStatus();
  const auto now = state_.turns.Now();
  failed->second.publishers[member.name()] = {member.session, member.node(), now, now};
  return failed->second.status;
}

Publication& Publications::OpenVersion(LeaderJob& job, const PublishVersion& call) const {
  const auto ended = [](const std::map<std::string, Delivery>& deliveries) {
    return std::all_of(deliveries.begin(), deliveries.end(),
                       [](const auto& entry) { return entry.second.ended.has_value(); });
  };
  for (auto it = job.publications.begin();
       it != job.publications.end() && job.publications.size() >= kVersionsKept;) {
    const Publication& old = it->second;
    const bool over = old.over() && ended(old.deliveries) && ended(old.late);
    it = over ? job.publications.erase(it) : std::next(it);
  }
  Publication& publication = job.publications[call.version];
  publication.version = call.version;
  publication.options = call.options;
  publication.opened = publication.since = state_.turns.Now();
  job.spent = call.version;
  return publication;
}

void Publications::RefuseRound(LeaderJob& job, Publication& opening) {
  std::vector<std::string> said;
  for (const auto& [name, caller] : opening.publishers) {
    const Version version = opening.named.try_emplace(name, opening.version).first->second;
    said.push_back(absl::StrCat(name.ToString(), " version ", version.value()));
  }
  FailOpening(job, opening,
              absl::InvalidArgumentError(absl::StrCat(
                  "job ", job.name,
                  ": trainer ranks name different versions: ", absl::StrJoin(said, ", "))));
}

void Publications::FailOpening(LeaderJob& job,
                               Publication& publication,
                               const absl::Status& status) {
  publication.status = status;
  if (publication.deadline.has_value()) state_.turns.Cancel(*publication.deadline);
  Step(job.name, publication, PublicationState::kFailed, state_.turns.Now());
  AnswerPublishers(job, publication);
  std::erase_if(job.accepts, [&](const auto& entry) {
    if (entry.second.version != publication.version) return false;
    if (const Member* member = job.members.Find(entry.first); member != nullptr) {
      AnswerReceive(*member, publication.version, status);
    }
    return true;
  });
  for (const GroupCensus& census : job.members.Groups()) {
    if (census.role != Role::kRollout) continue;
    for (const std::string& node : job.NodesOfGroup(census.group)) {
      state_.peers.Send(node, VersionFailed{job.name, census.group, publication.version, status});
    }
  }
  late_.Consider(job);
}

void Publications::ConsiderOffer(LeaderJob& job) {
  Publication* opening = job.InState(PublicationState::kOpening);
  if (opening == nullptr || job.InState(PublicationState::kOffered) != nullptr) return;
  const Attendance attendance = TakeAttendance(job, *opening);
  if (!attendance.all_published) return;
  if (!opening->ready.has_value()) {
    opening->ready = state_.turns.Now();
    ArmDeadline(job, *opening);
  }
  const std::uint32_t min_groups = state_.options.min_groups;
  if (!opening->deadline_passed &&
      (attendance.whole.size() < min_groups || !attendance.partial.empty())) {
    return;
  }
  const std::string late = Seconds(state_.turns.Now() - *opening->ready);
  if (const absl::Status why = WhyNotOffered(*opening, attendance, min_groups, late); !why.ok()) {
    FailOpening(
        job, *opening,
        absl::Status(why.code(), absl::StrCat(Title(job, opening->version), ": ", why.message())));
    return;
  }
  Offer(job, *opening, attendance.whole);
}

void Publications::GiveUp(const GiveUpVersion& call, const std::string& node) {
  const Member* member = Speaker(call.session, node);
  if (member == nullptr) return;
  LeaderJob& job = *state_.JobOf(call.session);
  if (member->role() == Role::kRollout) {
    GiveUpReceive(job, *member, call);
    return;
  }
  Publication* publication = job.Find(call.version);
  if (publication == nullptr || publication->over()) return;  // answered already
  const absl::Status status =
      Late(GaveUp(*member, call), WaitsOf(job, *publication, state_.turns.Now()));
  if (publication->state == PublicationState::kOpening) {
    FailOpening(job, *publication, status);
  } else {
    FailUndecided(job, *publication, status);
  }
}

void Publications::GiveUpReceive(LeaderJob& job, const Member& member, const GiveUpVersion& call) {
  const std::string text = GaveUp(member, call);
  const auto early = job.accepts.find(member.name());
  if (early != job.accepts.end() && early->second.version == call.version) {
    const Publication* opening = job.InState(PublicationState::kOpening);
    const auto since = early->second.caller.since;
    const std::vector<Wait> waits = opening != nullptr
                                        ? WaitsOf(job, *opening, state_.turns.Now())
                                        : WaitsForTrainers(job, since, state_.turns.Now());
    job.accepts.erase(early);
    AnswerReceive(member, call.version, Late(text, waits));
    return;
  }
  Publication* publication = job.Find(call.version);
  if (publication == nullptr) return;
  Delivery* delivery = publication->DeliveryTo(member.name().group);
  if (delivery == nullptr) return;
  deliveries_.Fail({job, *publication, *delivery},
                   Late(text, WaitsOf(job, *delivery, state_.turns.Now())));
  OnDeliveryChanged(job, *publication);
}

void Publications::MemberJoined(LeaderJob& job, const std::string& group) {
  ConsiderOffer(job);
  if (job.members.IsWhole(group)) late_.Consider(job);
}

bool Publications::MembersLost(LeaderJob& job,
                               const std::vector<Member>& lost,
                               const std::string& why) {
  absl::Status trainer_left;
  bool fails = false;
  for (const Member& member : lost) {
    const Culprit culprit = member.ToCulprit(Culprit::Reason::kGone, "");
    const absl::Status left = WithCulprits(
        absl::UnavailableError(absl::StrCat(member.ToString(), " left: ", why)), {&culprit, 1});
    if (member.role() == Role::kRollout) {
      fails = RolloutLeft(job, member, left) || fails;
    } else if (trainer_left.ok()) {
      trainer_left = left;
    }
  }
  if (!trainer_left.ok()) {
    fails = fails || job.InState(PublicationState::kOpening) != nullptr ||
            job.InState(PublicationState::kOffered) != nullptr;
    TrainerLeft(job, trainer_left);
  }
  if (Publication* offered = job.InState(PublicationState::kOffered); offered != nullptr) {
    OnDeliveryChanged(job, *offered);
  }
  ConsiderOffer(job);
  late_.Consider(job);
  return fails;
}

}  // namespace wb
