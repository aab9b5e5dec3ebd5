#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "planner/model/ids.h"
#include "planner/model/plan_part.h"
#include "planner/model/registration.h"

namespace wb {

// What daemons and the leader say to each other, as values: the leader and the coordinator are
// written against these and know nothing of gRPC. daemon/rpc/cluster_convert translates; see
// proto/weightbridge/v1/cluster.proto for the meaning of each. Times are in seconds.

/// 128 random bits in hex, given to a worker's connection at its opening.
using SessionId = std::string;

/// What a client knows of its own memory; only it knows.
enum class MemoryState : std::uint8_t { kEmpty, kValid, kInvalid, kInDoubt };

/// A group's end of one publication.
struct GroupOutcome {
  std::string group;
  absl::Status status;
};

/// Bytes of a delivery received by one daemon, by the path they took.
struct BytesByPath {
  std::uint64_t tcp = 0;
  std::uint64_t shm = 0;
  std::uint64_t local = 0;  // region to region inside the daemon
  friend bool operator==(const BytesByPath&, const BytesByPath&) = default;
};

// ---- daemon to leader ----

struct ClusterHello {
  std::string node;
  Incarnation incarnation;
  std::string data_address;
  std::string fabric;
  std::string host;
  std::int32_t pid = 0;
};

/// Names what equal replicas have in common of their registrations: tensors, role and params.
struct ContentsId {
  std::string sha256;       // 32 bytes; empty: not worked out yet
  std::uint64_t bytes = 0;  // of the contents on the wire
  friend bool operator==(const ContentsId&, const ContentsId&) = default;
};

/// The newest version of a group whose commit a daemon has taken part in.
struct GroupCommit {
  std::string group;
  Version version;
};

struct RegisterWorker {
  SessionId session;
  Incarnation incarnation;
  std::int32_t world_size = 0;
  Epoch epoch;
  Version held_version;
  MemoryState memory = MemoryState::kEmpty;
  AttemptId attempt;  // by which held_version came, when memory is in doubt
  std::shared_ptr<const Registration> registration;
  ContentsId contents;               // of `registration`; may be left out
  std::vector<GroupCommit> commits;  // at this daemon, in the worker's job
};

struct UnregisterWorker {
  SessionId session;
  std::string reason;
  bool left = false;  // in order: its daemon drains, or its Join came to nothing
};

/// What a trainer rank says of a version besides its number.
struct PublishOptions {
  std::string label;                      // for people
  std::set<std::string> required_groups;  // that must commit; empty: all that take part
};

struct PublishVersion {
  SessionId session;
  Version version;
  PublishOptions options;
  /// From a snapshot: what taking it took, after which the worker went on. Unset: in place.
  std::optional<double> snapshot_seconds = {};
};

struct AcceptVersion {
  SessionId session;
  Version version;
};

struct GiveUpVersion {
  SessionId session;
  Version version;
  std::string reason;
};

struct AttemptPrepared {
  AttemptId attempt;
};

struct AttemptStaged {
  AttemptId attempt;
  BytesByPath bytes;
};

struct AttemptFailed {
  AttemptId attempt;
  absl::Status status;
};

struct AttemptAborted {
  AttemptId attempt;
};

struct AttemptCommitted {
  AttemptId attempt;
};

struct Heartbeat {};

using ToLeader = std::variant<ClusterHello,
                              RegisterWorker,
                              UnregisterWorker,
                              PublishVersion,
                              AcceptVersion,
                              GiveUpVersion,
                              AttemptPrepared,
                              AttemptStaged,
                              AttemptFailed,
                              AttemptAborted,
                              AttemptCommitted,
                              Heartbeat>;

// ---- leader to daemon ----

struct Welcome {
  Incarnation leader;
};

struct WorkerRegistered {
  SessionId session;
  absl::Status status;
};

/// What became of a version that a worker registered as in doubt.
struct VersionOutcome {
  SessionId session;
  Version version;
  bool committed = false;
};

struct VersionOffered {
  std::string job;
  std::string group;
  Version version;
};

/// The version was on offer to the group and cannot be received (any more); told to every daemon
/// of the group, besides FinishReceive to the ranks that had accepted it.
struct VersionFailed {
  std::string job;
  std::string group;
  Version version;
  absl::Status status;
};

/// Which start of a worker, and which of its registrations, an attempt speaks of.
struct WorkerGeneration {
  Incarnation incarnation;
  Epoch epoch;
  friend bool operator==(const WorkerGeneration&, const WorkerGeneration&) = default;
};

struct PeerAddress {
  std::string node;
  Incarnation incarnation;
  std::string data_address;
};

struct PrepareAttempt {
  AttemptId attempt;
  std::string job;
  std::string group;
  Version version;
  Fingerprint fingerprint;
  std::optional<PlanPart> plan;  // absent: the daemon already holds it
  std::vector<PeerAddress> peers;
  std::map<std::string, WorkerGeneration> workers;  // "group/rank" of local ones
  // Groups of the job that have left: their plans need not be held, and come again if needed.
  std::vector<std::string> forget = {};
  /// `plan` as it goes out, in place of it: see PeerLinks::Pack.
  std::shared_ptr<const std::string> packed_plan = {};
};

struct GoAttempt {
  AttemptId attempt;
};

struct CommitAttempt {
  AttemptId attempt;
};

struct AbortAttempt {
  AttemptId attempt;
  absl::Status status;
};

struct FinishPublish {
  SessionId session;
  Version version;
  absl::Status status;
  std::vector<GroupOutcome> outcomes;
  double wait_seconds = 0;
  double move_seconds = 0;
};

struct FinishReceive {
  SessionId session;
  Version version;
  absl::Status status;
  double wait_seconds = 0;
  double move_seconds = 0;
};

using FromLeader = std::variant<Welcome,
                                WorkerRegistered,
                                VersionOutcome,
                                VersionOffered,
                                VersionFailed,
                                PrepareAttempt,
                                GoAttempt,
                                CommitAttempt,
                                AbortAttempt,
                                FinishPublish,
                                FinishReceive,
                                Heartbeat>;

}  // namespace wb
