#include "daemon/leader/waits.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "daemon/leader/late.h"

namespace wb {
namespace {

using TimePoint = Timers::Clock::time_point;

/// What is waited for of ranks that are not there: a group's.
Wait MissingRanks(const GroupCensus& census) {
  Wait wait{{}, census.ToString()};
  wait.who.group = census.group;
  wait.who.stage = "register";
  return wait;
}

Wait OfMember(const Member& member, const std::string& stage) {
  return {member.ToCulprit(Culprit::Reason::kLate, stage),
          absl::StrCat(member.ToString(), " to ", stage)};
}

Wait WithSince(Wait wait, Timers::Clock::duration since) {
  wait.who.since_seconds = std::chrono::duration<double>(since).count();
  return wait;
}

Wait Unnamed(const std::string& what, const std::string& stage) {
  Wait wait{{}, what};
  wait.who.stage = stage;
  return wait;
}

std::vector<Wait> OpeningWaits(const LeaderJob& job,
                               const Publication& publication,
                               TimePoint now) {
  std::vector<Wait> waits;
  const auto add = [&](Wait wait, TimePoint since) {
    waits.push_back(WithSince(std::move(wait), now - since));
  };
  bool rollouts = false;
  for (const GroupCensus& census : job.members.Groups()) {
    if (!census.whole()) add(MissingRanks(census), publication.opened);
    rollouts = rollouts || census.role == Role::kRollout;
  }
  for (const auto& [name, member] : job.members.all()) {
    if (member.role() == Role::kRollout || publication.publishers.contains(name)) continue;
    add(OfMember(member, "publish"), publication.opened);
  }
  if (!rollouts) add(Unnamed("a rollout group to register", "register"), publication.opened);
  for (const std::string& group : AbsentRequired(job, publication)) {
    Wait absent = Unnamed(absl::StrCat("required group ", group, " to register"), "register");
    absent.who.group = group;
    add(std::move(absent), publication.opened);
  }
  const Publication* offered = nullptr;
  for (const auto& [version, other] : job.publications) {
    if (other.state == PublicationState::kOffered) offered = &other;
  }
  if (offered != nullptr) {
    add(Unnamed(absl::StrCat("version ", offered->version.value(), " to end"), "end"),
        offered->since);
  }
  if (const auto since = job.plans.making_since(); since.has_value()) {
    add(Unnamed("the leader to make the plan", "plan"), *since);
  }
  return waits;
}

struct Task {
  const char* stage;
  const char* before_group;  // "to prepare "
};

/// What a delivery's daemons are to do in its state; nothing where they are not waited for.
std::optional<Task> TaskOf(DeliveryState state) {
  switch (state) {
    case DeliveryState::kWaiting:
      return Task{"prepare", "to prepare "};
    case DeliveryState::kMoving:
      return Task{"move", "to finish moving to "};
    case DeliveryState::kInstalling:
      return Task{"commit", "to commit "};
    case DeliveryState::kFailed:
      return Task{"abort", "to confirm the abort of "};
    case DeliveryState::kPrepared:
    case DeliveryState::kStaged:
    case DeliveryState::kCommitted:
    case DeliveryState::kRetired:
      return std::nullopt;
  }
  return std::nullopt;
}

/// The daemon of `node`, which holds members of the job, as what `delivery` waits for.
Wait OfNode(const LeaderJob& job, const Delivery& delivery, const std::string& node) {
  const Task task = *TaskOf(delivery.state);
  Wait wait{{}, absl::StrCat("node ", node, " ", task.before_group, delivery.group)};
  wait.who.group = delivery.group;
  wait.who.node = node;
  wait.who.stage = task.stage;
  const auto& all = job.members.all();
  const auto there = std::find_if(all.begin(), all.end(),
                                  [&](const auto& entry) { return entry.second.node() == node; });
  if (there != all.end()) wait.who.host = there->second.host;
  return wait;
}

bool IsLate(const Delivery& delivery, const AttemptPeer& peer) {
  switch (delivery.state) {
    case DeliveryState::kWaiting:
      return !peer.prepared;
    case DeliveryState::kMoving:
      return !peer.staged;
    case DeliveryState::kInstalling:
      return !peer.committed;
    case DeliveryState::kFailed:
      return !peer.aborted && !delivery.ended.has_value();
    case DeliveryState::kPrepared:
    case DeliveryState::kStaged:
    case DeliveryState::kCommitted:
    case DeliveryState::kRetired:
      return false;
  }
  return false;
}

}  // namespace

std::vector<std::string> AbsentRequired(const LeaderJob& job, const Publication& publication) {
  std::vector<std::string> absent;
  for (const std::string& group : publication.options.required_groups) {
    if (job.members.OfGroup(group).empty()) absent.push_back(group);
  }
  return absent;
}

std::vector<Wait> WaitsOf(const LeaderJob& job, const Delivery& delivery, TimePoint now) {
  std::vector<Wait> waits;
  const auto since = now - delivery.since;
  if (delivery.state == DeliveryState::kWaiting && !delivery.attempt.has_value()) {
    for (const Member* member : job.members.OfGroup(delivery.group)) {
      if (delivery.accepted.contains(member->name().rank)) continue;
      waits.push_back(WithSince(OfMember(*member, "accept"), since));
    }
    return waits;
  }
  for (const auto& [node, peer] : delivery.participants) {
    if (!IsLate(delivery, peer)) continue;
    waits.push_back(WithSince(
        peer.asked ? OfNode(job, delivery, node)
                   : Unnamed(absl::StrCat("the leader to make the plan for node ", node), "plan"),
        since));
  }
  if (delivery.state != DeliveryState::kPrepared) return waits;
  if (const Delivery* reader = FindReader(job, delivery.group); reader != nullptr) {
    waits.push_back(WithSince(Unnamed(absl::StrCat(reader->group, ", which reads ", delivery.group,
                                                   ", before that is written"),
                                      "read"),
                              since));
  } else {
    waits.push_back(WithSince(
        Unnamed(absl::StrCat("the other groups before ", delivery.group, " goes"), "prepare"),
        since));
  }
  return waits;
}

std::vector<Wait> WaitsOf(const LeaderJob& job, const Publication& publication, TimePoint now) {
  if (publication.state == PublicationState::kOpening) return OpeningWaits(job, publication, now);
  std::vector<Wait> waits;
  for (const auto* deliveries : {&publication.deliveries, &publication.late}) {
    for (const auto& [group, delivery] : *deliveries) {
      std::vector<Wait> more = WaitsOf(job, delivery, now);
      waits.insert(waits.end(), more.begin(), more.end());
    }
  }
  return waits;
}

std::vector<Wait> WaitsForTrainers(const LeaderJob& job, TimePoint since, TimePoint now) {
  Wait wait = Unnamed("the trainers to publish it", "publish");
  const std::optional<GroupCensus> trainers = job.members.TrainerGroup();
  if (trainers.has_value()) wait.who.group = trainers->group;
  return {WithSince(std::move(wait), now - since)};
}

std::string ToString(const Wait& wait) {
  return absl::StrFormat("for %s, %.1f s", wait.what, wait.who.since_seconds);
}

std::string JoinWaits(const std::vector<Wait>& waits) {
  if (waits.empty()) return "";
  const auto shown = static_cast<std::ptrdiff_t>(std::min(waits.size(), kMaxCulprits));
  std::string text = absl::StrCat(
      "waiting ",
      absl::StrJoin(waits.begin(), waits.begin() + shown, "; ",
                    [](std::string* out, const Wait& wait) { *out += ToString(wait); }));
  if (waits.size() > kMaxCulprits) {
    absl::StrAppend(&text, " and ", waits.size() - kMaxCulprits, " more");
  }
  return text;
}

absl::Status Late(const std::string& text, const std::vector<Wait>& waits) {
  std::vector<Culprit> culprits;
  culprits.reserve(waits.size());
  for (const Wait& wait : waits) culprits.push_back(wait.who);
  return WithCulprits(absl::DeadlineExceededError(
                          waits.empty() ? text : absl::StrCat(text, "; ", JoinWaits(waits))),
                      culprits);
}

}  // namespace wb
