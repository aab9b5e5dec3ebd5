#include "daemon/state/members.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "daemon/state/seconds.h"
#include "planner/base/status_macros.h"
#include "planner/model/describe.h"
#include "planner/model/dtype.h"

namespace wb {
namespace {

constexpr std::size_t kRanksInText = 16;

std::string Declared(const Tensor& tensor) {
  return absl::StrCat(Describe(tensor), tensor.overlap_identical ? " overlap IDENTICAL" : "");
}

}  // namespace

std::string Member::ToString() const {
  return absl::StrCat(name().ToString(), " (node ", node(), ")");
}

Culprit Member::ToCulprit(Culprit::Reason reason, const std::string& stage) const {
  return {reason, name().ToString(), name().group, node(), host, stage, 0};
}

std::uint64_t PieceBytes(const Registration& registration) {
  std::uint64_t bytes = 0;
  for (const Piece& piece : registration.layout.pieces) {
    const Dtype dtype = registration.tensors[piece.tensor.value()].dtype;
    bytes += static_cast<std::uint64_t>(piece.box.elements() * DtypeBytes(dtype));
  }
  return bytes;
}

std::string GroupCensus::ToString() const {
  std::string text = absl::StrCat(group, ": ", registered, " of ", world_size, " registered");
  if (missing.empty()) return text;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(missing.size(), kRanksInText));
  absl::StrAppend(&text, ": missing ranks ",
                  absl::StrJoin(missing.begin(), missing.begin() + shown, ","));
  if (missing.size() > kRanksInText) {
    absl::StrAppend(&text, " and ", missing.size() - kRanksInText, " more");
  }
  return text;
}

absl::Status JobMembers::Admit(Member member) {
  if (by_name_.size() >= kMaxWorkers) {
    return absl::ResourceExhaustedError(absl::StrCat("job ", member.registration->job, " has ",
                                                     by_name_.size(), " workers, at most ",
                                                     kMaxWorkers, " are allowed"));
  }
  if (stale_) Redeclare();
  WB_RETURN_IF_ERROR(CheckRank(member));
  WB_RETURN_IF_ERROR(CheckGroup(member));
  WB_RETURN_IF_ERROR(CheckTensors(*member.registration));
  Declare(*member.registration);
  const WorkerName name = member.name();
  Group& group = groups_[name.group];
  group = {member.role(), member.world_size, group.registered + 1};
  by_session_.emplace(member.session, name);
  by_name_.emplace(name, std::move(member));
  return absl::OkStatus();
}

std::optional<Member> JobMembers::Remove(const SessionId& session) {
  const auto found = by_session_.find(session);
  if (found == by_session_.end()) return std::nullopt;
  const auto member = by_name_.find(found->second);
  std::optional<Member> removed = std::move(member->second);
  by_name_.erase(member);
  by_session_.erase(found);
  const auto group = groups_.find(removed->name().group);
  if (--group->second.registered == 0) groups_.erase(group);
  stale_ = true;
  if (by_name_.empty()) Redeclare();  // what the job's tensors were is of no use to the next
  return removed;
}

const Member* JobMembers::Find(const SessionId& session) const {
  const auto found = by_session_.find(session);
  return found == by_session_.end() ? nullptr : &by_name_.at(found->second);
}

Member* JobMembers::Find(const SessionId& session) {
  const auto found = by_session_.find(session);
  return found == by_session_.end() ? nullptr : &by_name_.at(found->second);
}

const Member* JobMembers::Find(const WorkerName& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

std::vector<const Member*> JobMembers::OfGroup(const std::string& group) const {
  std::vector<const Member*> members;
  const WorkerName first{group, 0};
  for (auto it = by_name_.lower_bound(first); it != by_name_.end() && it->first.group == group;
       ++it) {
    members.push_back(&it->second);
  }
  return members;
}

bool JobMembers::IsWhole(const std::string& group) const {
  const auto found = groups_.find(group);
  return found != groups_.end() && found->second.registered == found->second.world_size;
}

GroupCensus JobMembers::Census(const std::string& name, const Group& group) const {
  GroupCensus census{name, group.role, group.world_size, group.registered, {}};
  for (std::int32_t rank = 0; !census.whole() && rank < group.world_size; ++rank) {
    if (!by_name_.contains(WorkerName{name, rank})) census.missing.push_back(rank);
  }
  return census;
}

std::vector<GroupCensus> JobMembers::Groups() const {
  std::vector<GroupCensus> groups;
  for (const auto& [name, group] : groups_) groups.push_back(Census(name, group));
  return groups;
}

std::optional<GroupCensus> JobMembers::TrainerGroup() const {
  for (const auto& [name, group] : groups_) {
    if (group.role == Role::kTrainer) return Census(name, group);
  }
  return std::nullopt;
}

Version JobMembers::NewestHeld() const {
  Version newest;
  for (const auto& [name, member] : by_name_) newest = std::max(newest, member.held_version);
  return newest;
}

absl::Status JobMembers::CheckRank(const Member& member) const {
  const std::string name = member.name().ToString();
  if (member.world_size < 1 || member.world_size > static_cast<std::int32_t>(kMaxWorkers)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": world_size is ", member.world_size, ", want 1..", kMaxWorkers));
  }
  if (member.name().rank < 0 || member.name().rank >= member.world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": rank is ", member.name().rank, ", want 0..", member.world_size - 1));
  }
  if (const Member* same = Find(member.session); same != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(name, ": session ", member.session,
                                                 " is registered already, as ", same->ToString()));
  }
  if (const Member* holder = Find(member.name()); holder != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "rank ", name, " is taken by session ", holder->session, " on node ", holder->node(),
        ", which is registered since ", Seconds(member.since - holder->since), "; session ",
        member.session, " on node ", member.node(), " is refused"));
  }
  return absl::OkStatus();
}

absl::Status JobMembers::CheckGroup(const Member& member) const {
  const std::string name = member.name().ToString();
  if (const auto group = groups_.find(member.name().group); group != groups_.end()) {
    if (group->second.role != member.role()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " registers as ",
                                                     RoleName(member.role()), ", its group is ",
                                                     RoleName(group->second.role)));
    }
    if (group->second.world_size != member.world_size) {
      return absl::InvalidArgumentError(absl::StrCat(name, " says world_size ", member.world_size,
                                                     ", the other ranks of its group say ",
                                                     group->second.world_size));
    }
    return absl::OkStatus();
  }
  if (member.role() != Role::kTrainer) return absl::OkStatus();
  for (const auto& [other, group] : groups_) {
    if (group.role != Role::kTrainer) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " would be of a second trainer group: job ", member.registration->job,
                     " already has trainer group ", other, "; want one"));
  }
  return absl::OkStatus();
}

absl::Status JobMembers::CheckTensors(const Registration& registration) const {
  for (const Tensor& tensor : registration.tensors) {
    const auto found = declared_.find(tensor.name);
    if (found == declared_.end() || found->second.tensor == tensor) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor.name, " is declared as ", Declared(tensor), " by ",
                     registration.layout.name.ToString(), " and as ",
                     Declared(found->second.tensor), " by ", found->second.by.ToString()));
  }
  return absl::OkStatus();
}

void JobMembers::Declare(const Registration& registration) {
  for (const Tensor& tensor : registration.tensors) {
    if (declared_.contains(tensor.name)) continue;  // as nearly all are
    declared_.emplace(tensor.name, Declaration{tensor, registration.layout.name});
  }
}

void JobMembers::Redeclare() {
  declared_.clear();
  for (const auto& [name, member] : by_name_) Declare(*member.registration);
  stale_ = false;
}

}  // namespace wb
