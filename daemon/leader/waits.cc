#include "daemon/leader/waits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "daemon/leader/late.h"
#include "daemon/state/seconds.h"

namespace wb {
namespace {

using TimePoint = Timers::Clock::time_point;

constexpr std::size_t kWaitsInText = 8;

std::vector<std::string> OpeningWaits(const LeaderJob& job,
                                      const Publication& publication,
                                      TimePoint now) {
  std::vector<std::string> waits;
  const auto add = [&](const std::string& what, TimePoint since) {
    waits.push_back(absl::StrCat("for ", what, ", ", Seconds(now - since)));
  };
  bool rollouts = false;
  for (const GroupCensus& census : job.members.Groups()) {
    if (!census.whole()) add(census.ToString(), publication.opened);
    rollouts = rollouts || census.role == Role::kRollout;
  }
  for (const auto& [name, member] : job.members.all()) {
    if (member.role() == Role::kRollout || publication.publishers.contains(name)) continue;
    add(absl::StrCat(member.ToString(), " to publish"), publication.opened);
  }
  if (!rollouts) add("a rollout group to register", publication.opened);
  for (const std::string& group : AbsentRequired(job, publication)) {
    add(absl::StrCat("required group ", group, " to register"), publication.opened);
  }
  const Publication* offered = nullptr;
  for (const auto& [version, other] : job.publications) {
    if (other.state == PublicationState::kOffered) offered = &other;
  }
  if (offered != nullptr) {
    add(absl::StrCat("version ", offered->version.value(), " to end"), offered->since);
  }
  return waits;
}

std::string Participant(const Delivery& delivery, const std::string& node) {
  switch (delivery.state) {
    case DeliveryState::kWaiting:
      return absl::StrCat("node ", node, " to prepare ", delivery.group);
    case DeliveryState::kMoving:
      return absl::StrCat("node ", node, " to finish moving to ", delivery.group);
    case DeliveryState::kInstalling:
      return absl::StrCat("node ", node, " to commit ", delivery.group);
    case DeliveryState::kFailed:
      return absl::StrCat("node ", node, " to confirm the abort of ", delivery.group);
    case DeliveryState::kPrepared:
    case DeliveryState::kStaged:
    case DeliveryState::kCommitted:
    case DeliveryState::kRetired:
      return "";
  }
  return "";
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

std::vector<std::string> WaitsOf(const LeaderJob& job, const Delivery& delivery, TimePoint now) {
  std::vector<std::string> waits;
  const std::string since = Seconds(now - delivery.since);
  if (delivery.state == DeliveryState::kWaiting && !delivery.attempt.has_value()) {
    for (const Member* member : job.members.OfGroup(delivery.group)) {
      if (delivery.accepted.contains(member->name().rank)) continue;
      waits.push_back(absl::StrCat("for ", member->ToString(), " to accept, ", since));
    }
    return waits;
  }
  for (const auto& [node, peer] : delivery.participants) {
    if (!IsLate(delivery, peer)) continue;
    waits.push_back(absl::StrCat("for ", Participant(delivery, node), ", ", since));
  }
  if (delivery.state != DeliveryState::kPrepared) return waits;
  if (const Delivery* reader = FindReader(job, delivery.group); reader != nullptr) {
    waits.push_back(absl::StrCat("for ", reader->group, ", which reads ", delivery.group,
                                 ", before that is written, ", since));
  } else {
    waits.push_back(absl::StrCat("for the other groups before ", delivery.group, " goes, ", since));
  }
  return waits;
}

std::vector<std::string> WaitsOf(const LeaderJob& job,
                                 const Publication& publication,
                                 TimePoint now) {
  if (publication.state == PublicationState::kOpening) return OpeningWaits(job, publication, now);
  std::vector<std::string> waits;
  for (const auto* deliveries : {&publication.deliveries, &publication.late}) {
    for (const auto& [group, delivery] : *deliveries) {
      std::vector<std::string> more = WaitsOf(job, delivery, now);
      waits.insert(waits.end(), more.begin(), more.end());
    }
  }
  return waits;
}

std::string JoinWaits(const std::vector<std::string>& waits) {
  if (waits.empty()) return "";
  const auto shown = static_cast<std::ptrdiff_t>(std::min(waits.size(), kWaitsInText));
  std::string text =
      absl::StrCat("waiting ", absl::StrJoin(waits.begin(), waits.begin() + shown, "; "));
  if (waits.size() > kWaitsInText) {
    absl::StrAppend(&text, " and ", waits.size() - kWaitsInText, " more");
  }
  return text;
}

}  // namespace wb
