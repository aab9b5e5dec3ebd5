#include "daemon/leader/doubts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <spdlog/spdlog.h>

#include "daemon/leader/publications.h"
#include "planner/model/layout.h"

namespace wb {
namespace {

bool HoldsInDoubt(const Member& member, Version version) {
  return member.memory == MemoryState::kInDoubt && member.held_version == version;
}

/// Makes room for one more of the group: those that are decided, lowest version first. What is
/// known of a group is not given up for others, unless there are more than a job can have.
void MakeRoom(LeaderJob& job, const std::string& group) {
  const auto decided = [](const auto& entry) { return entry.second.committed.has_value(); };
  if (job.doubts.size() >= kMaxWorkers) std::erase_if(job.doubts, decided);
  const auto begin = job.doubts.lower_bound({group, Version()});
  const auto end = std::find_if(begin, job.doubts.end(),
                                [&](const auto& entry) { return entry.first.first != group; });
  if (static_cast<std::size_t>(std::distance(begin, end)) < kVersionsKept) return;
  const auto oldest = std::find_if(begin, end, decided);
  if (oldest != end) job.doubts.erase(oldest);
}

}  // namespace

void Doubts::OnAdmitted(LeaderJob& job,
                        const SessionId& session,
                        const std::vector<GroupCommit>& commits) {
  for (const auto& [group, version] : commits) {
    const auto doubt = job.doubts.find({group, version});
    if (doubt == job.doubts.end()) {
      MakeRoom(job, group);
      job.doubts[{group, version}] = {state_.turns.Now(), {}, true};
    } else if (!doubt->second.committed.has_value()) {
      Decide(job, group, version, true);
    }
  }
  Member& member = *job.members.Find(session);
  if (member.role() != Role::kRollout) return;
  const std::string group = member.name().group;
  if (member.memory == MemoryState::kInDoubt) {
    const std::optional<bool> recorded = Recorded(job, member);
    if (recorded.has_value()) {
      Tell(member, *recorded);
      return;
    }
    Open(job, group, member.held_version);
  }
  Review(job, group);
}

std::optional<bool> Doubts::Recorded(const LeaderJob& job, const Member& member) {
  const auto decided = job.doubts.find({member.name().group, member.held_version});
  if (decided != job.doubts.end()) return decided->second.committed;
  const auto publication = job.publications.find(member.held_version);
  if (publication == job.publications.end()) return std::nullopt;
  const Publication& known = publication->second;
  for (const auto* deliveries : {&known.deliveries, &known.late}) {
    const auto delivery = deliveries->find(member.name().group);
    if (delivery == deliveries->end()) continue;
    const bool same = member.attempt == AttemptId() || delivery->second.attempt == member.attempt;
    if (same && CommitDecided(delivery->second.state)) return true;
  }
  return known.inherited ? std::nullopt : std::optional(false);
}

void Doubts::Open(LeaderJob& job, const std::string& group, Version version) {
  if (job.doubts.contains({group, version})) return;
  MakeRoom(job, group);
  Doubt& doubt = job.doubts[{group, version}];
  doubt.since = state_.turns.Now();
  doubt.deadline = state_.turns.After(
      state_.options.rejoin_timeout,
      [this, name = job.name, group, version] { OnDeadline(name, group, version); });
}

/// What the ranks that are here say together.
std::optional<bool> Doubts::Evidence(const LeaderJob& job,
                                     const std::string& group,
                                     Version version) {
  const std::vector<const Member*> ranks = job.members.OfGroup(group);
  std::size_t staged = 0;
  bool refuted = false;
  std::optional<AttemptId> attempt;
  bool same_attempt = true;
  for (const Member* rank : ranks) {
    if (rank->memory == MemoryState::kValid && rank->held_version == version) return true;
    if (!HoldsInDoubt(*rank, version)) {
      // Had it staged, it would be in doubt; one that has started anew cannot tell.
      refuted = refuted || rank->memory != MemoryState::kEmpty;
      continue;
    }
    ++staged;
    if (rank->attempt == AttemptId()) continue;
    same_attempt = same_attempt && attempt.value_or(rank->attempt) == rank->attempt;
    attempt = rank->attempt;
  }
  const bool whole =
      !ranks.empty() && ranks.size() == static_cast<std::size_t>(ranks.front()->world_size);
  if (whole && staged == ranks.size() && same_attempt) return true;
  if (refuted || !same_attempt) return false;
  return std::nullopt;
}

void Doubts::Review(LeaderJob& job, const std::string& group) {
  std::vector<Version> open;
  for (const auto& [key, doubt] : job.doubts) {
    if (key.first == group && !doubt.committed.has_value()) open.push_back(key.second);
  }
  for (const Version version : open) {
    const std::optional<bool> committed = Evidence(job, group, version);
    if (committed.has_value()) Decide(job, group, version, *committed);
  }
}

void Doubts::OnDeadline(const std::string& job, const std::string& group, Version version) {
  const auto found = state_.jobs.find(job);
  if (found == state_.jobs.end()) return;
  const auto doubt = found->second.doubts.find({group, version});
  if (doubt == found->second.doubts.end() || doubt->second.committed.has_value()) return;
  Decide(found->second, group, version, false);
}

void Doubts::Decide(LeaderJob& job, const std::string& group, Version version, bool committed) {
  Doubt& doubt = job.doubts.at({group, version});
  if (doubt.deadline.has_value()) state_.turns.Cancel(*doubt.deadline);
  doubt.deadline.reset();
  doubt.committed = committed;
  spdlog::info("job={} version={} group={} was in doubt: {}", job.name, version.value(), group,
               committed ? "committed" : "failed");
  for (const Member* rank : job.members.OfGroup(group)) {
    if (HoldsInDoubt(*rank, version)) Tell(*job.members.Find(rank->session), committed);
  }
}

void Doubts::Tell(Member& member, bool committed) {
  member.memory = committed ? MemoryState::kValid : MemoryState::kInvalid;
  state_.peers.Send(member.node(), VersionOutcome{member.session, member.held_version, committed});
}

}  // namespace wb
