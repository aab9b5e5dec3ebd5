#include "daemon/leader/late.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "daemon/leader/plans.h"

namespace wb {
namespace {

/// What all ranks of a whole group hold, valid; 0 when they do not hold one version.
Version HeldBy(const LeaderJob& job, const std::string& group) {
  const std::vector<const Member*> members = job.members.OfGroup(group);
  const Version held = members.front()->held_version;
  const bool all = std::all_of(members.begin(), members.end(), [&](const Member* member) {
    return member->memory == MemoryState::kValid && member->held_version == held;
  });
  return all ? held : Version();
}

/// What whole rollout groups hold, by group.
std::map<std::string, Version> HeldByGroups(const LeaderJob& job) {
  std::map<std::string, Version> held;
  for (const GroupCensus& census : job.members.Groups()) {
    if (census.role == Role::kTrainer || !census.whole()) continue;
    held.emplace(census.group, HeldBy(job, census.group));
  }
  return held;
}

/// Whether a delivery to the group has not ended; with a rank in two, neither could be told.
bool HasDelivery(const LeaderJob& job, const std::string& group) {
  return std::any_of(job.publications.begin(), job.publications.end(), [&](const auto& entry) {
    const auto& [version, publication] = entry;
    const auto under_way = [&](const std::map<std::string, Delivery>& deliveries) {
      const auto found = deliveries.find(group);
      return found != deliveries.end() && !found->second.ended.has_value();
    };
    return under_way(publication.deliveries) || under_way(publication.late);
  });
}

const Delivery& At(const LeaderJob& job, const std::pair<Version, std::string>& key) {
  return job.publications.at(key.first).late.at(key.second);
}

void DropEnded(LeaderJob& job) {
  std::erase_if(job.late, [&](const auto& key) { return At(job, key).ended.has_value(); });
}

/// Sessions of both groups, of which a plan was refused.
std::pair<SessionId, SessionId> SessionsOf(const LeaderJob& job,
                                           const std::string& source,
                                           const std::string& group) {
  return {job.members.OfGroup(source).front()->session,
          job.members.OfGroup(group).front()->session};
}

}  // namespace

const Delivery* FindReader(const LeaderJob& job, const std::string& group) {
  for (const auto& key : job.late) {
    const Delivery& delivery = At(job, key);
    if (delivery.sources == group && delivery.went.has_value() && !delivery.over()) {
      return &delivery;
    }
  }
  return nullptr;
}

void LateDeliveries::Consider(LeaderJob& job) {
  DropEnded(job);
  if (job.InState(PublicationState::kOpening) != nullptr ||
      job.InState(PublicationState::kOffered) != nullptr) {
    return;
  }
  const std::map<std::string, Version> held = HeldByGroups(job);
  Version newest;
  for (const auto& [group, version] : held) newest = std::max(newest, version);
  if (newest == Version()) return;
  for (const auto& [group, version] : held) {
    if (version == newest || HasDelivery(job, group)) continue;
    for (const auto& [source, holds] : held) {
      if (holds == newest && OfferFrom(job, source, group, newest)) break;
    }
  }
}

bool LateDeliveries::OfferFrom(LeaderJob& job,
                               const std::string& source,
                               const std::string& group,
                               Version version) {
  const std::pair<SessionId, SessionId> sessions = SessionsOf(job, source, group);
  if (job.late_refused.contains(sessions)) return false;
  const Offering* made = job.late_plans.Get(
      state_.works, Participants::Of(job.members, source, {group}), [this, name = job.name] {
        const auto found = state_.jobs.find(name);
        if (found != state_.jobs.end()) Consider(found->second);
      });
  if (made == nullptr) return true;
  const Offering offering = *made;
  job.late_plans.Forget();
  if (offering.plan == nullptr) {
    job.late_refused.insert(sessions);
    spdlog::info("job={} version={} group={} cannot be had from {}: {}", job.name, version.value(),
                 group, source, ToStatus(offering.refusals).ToString());
    return false;
  }
  const auto now = state_.turns.Now();
  const auto [found, is_new] = job.publications.try_emplace(version);
  Publication& publication = found->second;
  if (is_new) {
    publication.version = version;
    publication.inherited = true;
    publication.state = PublicationState::kReleased;
    publication.opened = publication.since = now;
  }
  Delivery& delivery = publication.late[group];
  const std::uint32_t tries = delivery.tries + 1;
  delivery = Delivery();
  delivery.tries = tries;
  delivery.group = group;
  delivery.sources = source;
  delivery.late = true;
  delivery.since = now;
  delivery.plan = offering.plan;
  delivery.bytes_planned = delivery.plan->groups.at(group).bytes;
  job.late.emplace(version, group);
  spdlog::info("job={} version={} group={} offered late, from {}", job.name, version.value(), group,
               source);
  for (const std::string& node : job.NodesOfGroup(group)) {
    state_.peers.Send(node, VersionOffered{job.name, group, version});
  }
  return true;
}

void LateDeliveries::Go(LeaderJob& job) {
  for (const auto& [version, group] : job.late) {
    Publication& publication = job.publications.at(version);
    Delivery& delivery = publication.late.at(group);
    if (delivery.state == DeliveryState::kPrepared) deliveries_.Go({job, publication, delivery});
  }
}

void LateDeliveries::MakeWay(LeaderJob& job, Version newer) {
  job.late_refused.clear();
  job.late_plans.Forget();
  const absl::Status status = absl::FailedPreconditionError(
      absl::StrCat("version ", newer.value(), " is on offer: receive that"));
  for (const auto& [version, group] : job.late) {
    Publication& publication = job.publications.at(version);
    Delivery& delivery = publication.late.at(group);
    if (!delivery.went.has_value()) deliveries_.Fail({job, publication, delivery}, status);
  }
  DropEnded(job);
}

void LateDeliveries::MemberLost(LeaderJob& job, const Member& member, const absl::Status& left) {
  const std::string& lost = member.name().group;
  for (const auto& [version, group] : job.late) {
    Publication& publication = job.publications.at(version);
    Delivery& delivery = publication.late.at(group);
    if (group == lost || delivery.sources == lost) {
      deliveries_.Fail({job, publication, delivery}, left);
    }
  }
}

}  // namespace wb
