#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "daemon/rpc/cluster/cluster_convert.h"
#include "daemon/rpc/wire_values.h"
#include "planner/base/status_macros.h"
#include "planner/model/layout.h"
#include "proto/convert.h"

namespace wb {
namespace {

absl::StatusOr<FromLeader> Read(const v1::WorkerRegistered& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  return WorkerRegistered{wire.session(), StatusFromProto(wire.status())};
}

absl::StatusOr<FromLeader> Read(const v1::VersionOutcome& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  return VersionOutcome{wire.session(), Version(wire.version()), wire.committed()};
}

absl::StatusOr<FromLeader> Read(const v1::VersionOffered& wire) {
  WB_RETURN_IF_ERROR(CheckLength("job", wire.job(), kMaxNameBytes));
  WB_RETURN_IF_ERROR(CheckName("group", wire.group()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  return VersionOffered{wire.job(), wire.group(), Version(wire.version())};
}

absl::StatusOr<FromLeader> Read(const v1::VersionFailed& wire) {
  WB_RETURN_IF_ERROR(CheckLength("job", wire.job(), kMaxNameBytes));
  WB_RETURN_IF_ERROR(CheckName("group", wire.group()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  absl::Status status = StatusFromProto(wire.status());
  if (status.ok()) return WrongField("status", "OK in a failure");
  return VersionFailed{wire.job(), wire.group(), Version(wire.version()), std::move(status)};
}

absl::StatusOr<std::vector<PeerAddress>> ReadPeers(const v1::PrepareAttempt& wire) {
  std::vector<PeerAddress> peers;
  for (const v1::PeerAddress& peer : wire.peers()) {
    WB_RETURN_IF_ERROR(CheckName("peers.node", peer.node()));
    WB_RETURN_IF_ERROR(CheckIncarnation(peer.incarnation()));
    WB_RETURN_IF_ERROR(
        CheckLength("peers.data_address", peer.data_address(), kMaxDataAddressBytes));
    peers.push_back({peer.node(), Incarnation(peer.incarnation()), peer.data_address()});
  }
  return peers;
}

absl::StatusOr<std::map<std::string, WorkerGeneration>> ReadWorkers(
    const v1::PrepareAttempt& wire) {
  std::map<std::string, WorkerGeneration> workers;
  for (const auto& [worker, epoch] : wire.epochs()) {
    WB_RETURN_IF_ERROR(CheckLength("epochs", worker, 2 * kMaxNameBytes));
    const auto incarnation = wire.incarnations().find(worker);
    if (incarnation == wire.incarnations().end()) {
      return WrongField("incarnations", absl::StrCat("has none of ", worker));
    }
    WB_RETURN_IF_ERROR(CheckIncarnation(incarnation->second));
    workers.emplace(worker, WorkerGeneration{Incarnation(incarnation->second), Epoch(epoch)});
  }
  if (wire.incarnations().size() != workers.size()) {
    return WrongField("incarnations", absl::StrCat("has ", wire.incarnations().size(),
                                                   " workers, epochs has ", workers.size()));
  }
  return workers;
}

absl::Status CheckNames(const v1::PrepareAttempt& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  WB_RETURN_IF_ERROR(CheckLength("job", wire.job(), kMaxNameBytes));
  WB_RETURN_IF_ERROR(CheckName("group", wire.group()));
  return CheckVersion(wire.version());
}

absl::StatusOr<FromLeader> Read(const v1::PrepareAttempt& wire) {
  PrepareAttempt prepare;
  WB_RETURN_IF_ERROR(CheckNames(wire));
  prepare.attempt = AttemptId(wire.attempt());
  prepare.job = wire.job();
  prepare.group = wire.group();
  prepare.version = Version(wire.version());
  prepare.fingerprint = Fingerprint(wire.fingerprint());
  if (wire.has_plan()) {
    WB_ASSIGN_OR_RETURN(prepare.plan, PlanPartFromProto(wire.plan()));
  }
  WB_ASSIGN_OR_RETURN(prepare.peers, ReadPeers(wire));
  WB_ASSIGN_OR_RETURN(prepare.workers, ReadWorkers(wire));
  for (const std::string& group : wire.forget()) {
    WB_RETURN_IF_ERROR(CheckName("forget", group));
    prepare.forget.push_back(group);
  }
  return prepare;
}

absl::StatusOr<FromLeader> Read(const v1::GoAttempt& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  return GoAttempt{AttemptId(wire.attempt())};
}

absl::StatusOr<FromLeader> Read(const v1::CommitAttempt& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  return CommitAttempt{AttemptId(wire.attempt())};
}

absl::StatusOr<FromLeader> Read(const v1::AbortAttempt& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  absl::Status status = StatusFromProto(wire.status());
  if (status.ok()) return WrongField("status", "OK in an abort");
  return AbortAttempt{AttemptId(wire.attempt()), std::move(status)};
}

absl::StatusOr<FromLeader> Read(const v1::FinishPublish& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  WB_RETURN_IF_ERROR(CheckSeconds("wait_seconds", wire.wait_seconds()));
  WB_RETURN_IF_ERROR(CheckSeconds("move_seconds", wire.move_seconds()));
  FinishPublish finish{
      wire.session(),      Version(wire.version()), StatusFromProto(wire.status()), {},
      wire.wait_seconds(), wire.move_seconds()};
  for (const v1::GroupOutcome& outcome : wire.outcomes()) {
    WB_RETURN_IF_ERROR(CheckName("outcomes.group", outcome.group()));
    finish.outcomes.push_back({outcome.group(), StatusFromProto(outcome.status())});
  }
  return finish;
}

absl::StatusOr<FromLeader> Read(const v1::FinishReceive& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  WB_RETURN_IF_ERROR(CheckSeconds("wait_seconds", wire.wait_seconds()));
  WB_RETURN_IF_ERROR(CheckSeconds("move_seconds", wire.move_seconds()));
  return FinishReceive{wire.session(), Version(wire.version()), StatusFromProto(wire.status()),
                       wire.wait_seconds(), wire.move_seconds()};
}

void Write(const Welcome& value, v1::ClusterReply& wire) {
  wire.mutable_welcome()->set_leader_incarnation(value.leader.value());
}

void Write(const WorkerRegistered& value, v1::ClusterReply& wire) {
  wire.mutable_worker_registered()->set_session(value.session);
  *wire.mutable_worker_registered()->mutable_status() = ToProto(value.status);
}

void Write(const VersionOutcome& value, v1::ClusterReply& wire) {
  v1::VersionOutcome& message = *wire.mutable_version_outcome();
  message.set_session(value.session);
  message.set_version(value.version.value());
  message.set_committed(value.committed);
}

void Write(const VersionOffered& value, v1::ClusterReply& wire) {
  v1::VersionOffered& message = *wire.mutable_version_offered();
  message.set_job(value.job);
  message.set_group(value.group);
  message.set_version(value.version.value());
}

void Write(const VersionFailed& value, v1::ClusterReply& wire) {
  v1::VersionFailed& message = *wire.mutable_version_failed();
  message.set_job(value.job);
  message.set_group(value.group);
  message.set_version(value.version.value());
  *message.mutable_status() = ToProto(value.status);
}

void Write(const PrepareAttempt& value, v1::ClusterReply& wire) {
  v1::PrepareAttempt& message = *wire.mutable_prepare();
  message.set_attempt(value.attempt.value());
  message.set_job(value.job);
  message.set_group(value.group);
  message.set_version(value.version.value());
  message.set_fingerprint(value.fingerprint.value());
  if (value.plan.has_value()) *message.mutable_plan() = ToProto(*value.plan);
  if (value.packed_plan != nullptr) message.set_plan_bytes(value.packed_plan->size());
  for (const PeerAddress& peer : value.peers) {
    v1::PeerAddress& address = *message.add_peers();
    address.set_node(peer.node);
    address.set_incarnation(peer.incarnation.value());
    address.set_data_address(peer.data_address);
  }
  for (const auto& [worker, generation] : value.workers) {
    (*message.mutable_epochs())[worker] = generation.epoch.value();
    (*message.mutable_incarnations())[worker] = generation.incarnation.value();
  }
  for (const std::string& group : value.forget) message.add_forget(group);
}

void Write(const GoAttempt& value, v1::ClusterReply& wire) {
  wire.mutable_go()->set_attempt(value.attempt.value());
}

void Write(const CommitAttempt& value, v1::ClusterReply& wire) {
  wire.mutable_commit()->set_attempt(value.attempt.value());
}

void Write(const AbortAttempt& value, v1::ClusterReply& wire) {
  wire.mutable_abort()->set_attempt(value.attempt.value());
  *wire.mutable_abort()->mutable_status() = ToProto(value.status);
}

void Write(const FinishPublish& value, v1::ClusterReply& wire) {
  v1::FinishPublish& message = *wire.mutable_finish_publish();
  message.set_session(value.session);
  message.set_version(value.version.value());
  *message.mutable_status() = ToProto(value.status);
  for (const GroupOutcome& outcome : value.outcomes) {
    v1::GroupOutcome& wire_outcome = *message.add_outcomes();
    wire_outcome.set_group(outcome.group);
    *wire_outcome.mutable_status() = ToProto(outcome.status);
  }
  message.set_wait_seconds(value.wait_seconds);
  message.set_move_seconds(value.move_seconds);
}

void Write(const FinishReceive& value, v1::ClusterReply& wire) {
  v1::FinishReceive& message = *wire.mutable_finish_receive();
  message.set_session(value.session);
  message.set_version(value.version.value());
  *message.mutable_status() = ToProto(value.status);
  message.set_wait_seconds(value.wait_seconds);
  message.set_move_seconds(value.move_seconds);
}

void Write(const Heartbeat& /*value*/, v1::ClusterReply& wire) {
  wire.mutable_heartbeat();
}

}  // namespace

v1::ClusterReply ToProto(const FromLeader& message, Term term) {
  v1::ClusterReply wire;
  wire.set_term(term.value());
  std::visit([&wire](const auto& value) { Write(value, wire); }, message);
  return wire;
}

absl::StatusOr<FromLeader> FromLeaderFromProto(const v1::ClusterReply& wire) {
  switch (wire.body_case()) {
    case v1::ClusterReply::kWelcome:
      return Welcome{Incarnation(wire.welcome().leader_incarnation())};
    case v1::ClusterReply::kWorkerRegistered:
      return Read(wire.worker_registered());
    case v1::ClusterReply::kVersionOutcome:
      return Read(wire.version_outcome());
    case v1::ClusterReply::kVersionOffered:
      return Read(wire.version_offered());
    case v1::ClusterReply::kVersionFailed:
      return Read(wire.version_failed());
    case v1::ClusterReply::kPrepare:
      return Read(wire.prepare());
    case v1::ClusterReply::kGo:
      return Read(wire.go());
    case v1::ClusterReply::kCommit:
      return Read(wire.commit());
    case v1::ClusterReply::kAbort:
      return Read(wire.abort());
    case v1::ClusterReply::kFinishPublish:
      return Read(wire.finish_publish());
    case v1::ClusterReply::kFinishReceive:
      return Read(wire.finish_receive());
    case v1::ClusterReply::kHeartbeat:
      return Heartbeat{};
    case v1::ClusterReply::kWantContents:  // between the two ends of the stream
    case v1::ClusterReply::kPlanBytes:
    case v1::ClusterReply::BODY_NOT_SET:
      break;
  }
  return WrongField("body", "is none that protocol 1 knows");
}

const char* NameOf(const v1::ClusterReply& wire) {
  const auto* field =
      v1::ClusterReply::descriptor()->FindFieldByNumber(static_cast<int>(wire.body_case()));
  return field == nullptr ? "nothing" : field->name().c_str();
}

}  // namespace wb
