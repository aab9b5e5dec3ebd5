#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "daemon/state/cluster_messages.h"
#include "planner/model/culprit.h"
#include "planner/model/ids.h"
#include "planner/model/registration.h"

namespace wb {

/// Sessions of one daemon at most.
inline constexpr std::size_t kMaxSessions = 4096;

/// A worker with a live session that the leader knows.
struct Member {
  SessionId session;
  Incarnation incarnation;
  std::int32_t world_size = 0;
  Epoch epoch;
  Version held_version;
  MemoryState memory = MemoryState::kEmpty;
  AttemptId attempt;  // by which held_version came, when memory is in doubt
  std::shared_ptr<const Registration> registration;
  std::chrono::steady_clock::time_point since;  // of its registration
  std::string host;                             // of its daemon

  const WorkerName& name() const { return registration->layout.name; }
  const std::string& node() const { return registration->layout.node; }
  Role role() const { return registration->layout.role; }
  WorkerGeneration generation() const { return {incarnation, epoch}; }
  /// "engine0/2 (node n1)".
  std::string ToString() const;
  /// As what a version waits for or has lost.
  Culprit ToCulprit(Culprit::Reason reason, const std::string& stage) const;
};

/// Bytes of all pieces of a registration.
[[nodiscard]] std::uint64_t PieceBytes(const Registration& registration);

/// How much of a group is there.
struct GroupCensus {
  std::string group;
  Role role = Role::kTrainer;
  std::int32_t world_size = 0;
  std::int32_t registered = 0;
  std::vector<std::int32_t> missing;  // ranks, ascending

  bool whole() const { return registered == world_size; }
  /// "engine0: 2 of 4 registered: missing ranks 2,3"; the first ranks when there are many.
  std::string ToString() const;
};

/// The members of one job.
///
/// Invariant: names and sessions are unique; the ranks of a group agree on role and world size and
/// lie in [0, world size); at most one group is the trainer's; every tensor is declared alike by
/// all. So a group with as many members as its world size is whole.
/// Loop-confined.
class JobMembers {
 public:
  /// All or nothing: a refused member leaves no trace. ALREADY_EXISTS names both sessions of a
  /// taken rank, and since when it is; INVALID_ARGUMENT names what does not fit, the value and what
  /// was wanted.
  absl::Status Admit(Member member);
  /// The member that was there, if any.
  std::optional<Member> Remove(const SessionId& session);

  const Member* Find(const SessionId& session) const;
  Member* Find(const SessionId& session);
  const Member* Find(const WorkerName& name) const;
  const std::map<WorkerName, Member>& all() const { return by_name_; }
  std::vector<const Member*> OfGroup(const std::string& group) const;
  bool IsWhole(const std::string& group) const;
  /// Ordered by name.
  std::vector<GroupCensus> Groups() const;
  /// The trainer group, if one has a member.
  std::optional<GroupCensus> TrainerGroup() const;
  /// The newest version that any member holds; 0 when none does.
  Version NewestHeld() const;

 private:
  struct Declaration {
    Tensor tensor;
    WorkerName by;
  };
  struct Group {
    Role role = Role::kTrainer;
    std::int32_t world_size = 0;
    std::int32_t registered = 0;
  };
  GroupCensus Census(const std::string& name, const Group& group) const;
  absl::Status CheckRank(const Member& member) const;
  absl::Status CheckGroup(const Member& member) const;
  absl::Status CheckTensors(const Registration& registration) const;
  void Declare(const Registration& registration);
  void Redeclare();

  std::map<WorkerName, Member> by_name_;
  absl::flat_hash_map<SessionId, WorkerName> by_session_;
  std::map<std::string, Group> groups_;  // those with members
  // What the members say of each tensor, with the first who said it. After a removal it may name
  // who has left: stale_ asks for a rebuild before it is read again.
  absl::flat_hash_map<std::string, Declaration> declared_;
  bool stale_ = false;
};

}  // namespace wb
