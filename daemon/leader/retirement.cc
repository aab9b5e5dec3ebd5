#include "daemon/leader/retirement.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace wb {
namespace {

using RanksByGroup = std::map<std::string, std::vector<const Member*>>;

RanksByGroup RolloutsByGroup(const std::vector<Member>& members) {
  RanksByGroup by_group;
  for (const Member& member : members) {
    if (member.role() == Role::kRollout) by_group[member.name().group].push_back(&member);
  }
  return by_group;
}

/// Whether `lost` are the first that left the group since it was whole.
bool WasWhole(const JobMembers& members, const std::vector<const Member*>& lost) {
  const Member& one = *lost.front();
  const std::size_t before = members.OfGroup(one.name().group).size() + lost.size();
  return before == static_cast<std::size_t>(one.world_size);
}

}  // namespace

void Retirement::NoteLost(const JobMembers& members,
                          const std::vector<Member>& lost,
                          const std::string& why) {
  if (members.all().empty()) return;  // the job is at its end
  const auto forgettable = [](const auto& entry) { return !entry.second.retired; };
  for (const auto& [name, ranks] : RolloutsByGroup(lost)) {
    if (!WasWhole(members, ranks)) continue;
    if (groups_.size() >= kMaxGroups) std::erase_if(groups_, forgettable);
    Group& group = groups_[name];
    group.lost.clear();
    for (const Member* rank : ranks) group.lost.emplace(rank->name().rank, rank->incarnation);
    group.why = absl::StrCat(ranks.front()->ToString(), " left: ", why);
    group.commits = 0;
  }
}

void Retirement::NoteCommit(const std::string& group) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || ++found->second.commits < 2) return;
  groups_.erase(found);
}

absl::Status Retirement::NoteJoin(const Member& member, std::uint32_t retire_after) {
  const auto found = groups_.find(member.name().group);
  if (retire_after == 0 || found == groups_.end()) return absl::OkStatus();
  Group& group = found->second;
  const auto lost = group.lost.find(member.name().rank);
  if (lost != group.lost.end()) {
    if (lost->second != member.incarnation) ++group.restarts;
    group.lost.clear();
  }
  if (!group.retired && group.restarts >= retire_after) {
    group.retired = true;
    spdlog::warn("job={} group={} retired after {} restarts: {}", member.registration->job,
                 member.name().group, group.restarts, group.why);
  }
  if (!group.retired) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(member.name().group, " is retired (leader.retire_after is ", retire_after,
                   "): it has restarted ", group.restarts,
                   " times without receiving two versions in a row; the last time ", group.why));
}

bool Retirement::IsRetired(const std::string& group) const {
  const auto found = groups_.find(group);
  return found != groups_.end() && found->second.retired;
}

std::vector<std::string> Retirement::Retired() const {
  std::vector<std::string> retired;
  for (const auto& [name, group] : groups_) {
    if (group.retired) retired.push_back(absl::StrCat(name, " is retired"));
  }
  return retired;
}

}  // namespace wb
