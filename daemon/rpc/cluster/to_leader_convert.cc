#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "daemon/rpc/cluster/cluster_convert.h"
#include "daemon/rpc/sha256.h"
#include "daemon/rpc/wire_values.h"
#include "planner/base/status_macros.h"
#include "planner/base/utf8.h"
#include "planner/model/layout.h"
#include "proto/convert.h"

namespace wb {
namespace {

constexpr std::uint32_t kProtocol = 1;

absl::StatusOr<ToLeader> Read(const v1::ClusterHello& wire) {
  if (wire.protocol() != kProtocol) {
    return WrongField("protocol",
                      absl::StrCat(wire.protocol(), ", this leader speaks ", kProtocol));
  }
  WB_RETURN_IF_ERROR(CheckName("node", wire.node()));
  WB_RETURN_IF_ERROR(CheckIncarnation(wire.incarnation()));
  WB_RETURN_IF_ERROR(CheckLength("data_address", wire.data_address(), kMaxDataAddressBytes));
  WB_RETURN_IF_ERROR(CheckLength("fabric", wire.fabric(), kMaxNameBytes));
  WB_RETURN_IF_ERROR(CheckLength("host", wire.host(), kMaxNameBytes));
  return ClusterHello{wire.node(),         Incarnation(wire.incarnation()),
                      wire.data_address(), wire.fabric(),
                      wire.host(),         wire.pid()};
}

/// Contents that come by digest leave the layout with the worker's identity alone.
absl::StatusOr<ContentsId> ReadContents(const v1::RegisterWorker& wire) {
  if (!wire.has_contents()) return ContentsId{};
  const v1::Contents& contents = wire.contents();
  if (contents.sha256().size() != kSha256Bytes) {
    return WrongField("contents.sha256", absl::StrCat("has ", contents.sha256().size(),
                                                      " bytes, want ", kSha256Bytes));
  }
  if (contents.bytes() == 0) return WrongField("contents.bytes", "is 0");
  if (!wire.layout().tensors().empty() || !wire.layout().aliases().empty() ||
      !wire.layout().worker().params().empty()) {
    return WrongField("layout", "has tensors or params beside those of its contents");
  }
  return ContentsId{contents.sha256(), contents.bytes()};
}

absl::StatusOr<std::vector<GroupCommit>> ReadCommits(const v1::RegisterWorker& wire) {
  std::vector<GroupCommit> commits;
  for (const v1::GroupCommit& commit : wire.commits()) {
    WB_RETURN_IF_ERROR(CheckName("commits.group", commit.group()));
    WB_RETURN_IF_ERROR(CheckVersion(commit.version()));
    commits.push_back({commit.group(), Version(commit.version())});
  }
  return commits;
}

absl::StatusOr<ToLeader> Read(const v1::RegisterWorker& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckIncarnation(wire.incarnation()));
  WB_RETURN_IF_ERROR(CheckWorldSize(wire.world_size()));
  WB_ASSIGN_OR_RETURN(const MemoryState memory, MemoryStateFromProto(wire.memory()));
  WB_RETURN_IF_ERROR(CheckHeld(memory, Version(wire.held_version())));
  WB_ASSIGN_OR_RETURN(ContentsId contents, ReadContents(wire));
  WB_ASSIGN_OR_RETURN(std::vector<GroupCommit> commits, ReadCommits(wire));
  std::variant<Registration, Refusals> checked = RegistrationFromProto(wire.layout());
  if (const auto* refusals = std::get_if<Refusals>(&checked)) return ToStatus(*refusals);
  return RegisterWorker{
      wire.session(),
      Incarnation(wire.incarnation()),
      wire.world_size(),
      Epoch(wire.epoch()),
      Version(wire.held_version()),
      memory,
      AttemptId(wire.attempt()),
      std::make_shared<const Registration>(std::get<Registration>(std::move(checked))),
      std::move(contents),
      std::move(commits)};
}

absl::StatusOr<ToLeader> Read(const v1::UnregisterWorker& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckLength("reason", wire.reason(), kMaxTextBytes));
  return UnregisterWorker{wire.session(), wire.reason(), wire.left()};
}

absl::StatusOr<ToLeader> Read(const v1::PublishVersion& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  WB_RETURN_IF_ERROR(CheckLength("label", wire.label(), kMaxTextBytes));
  WB_ASSIGN_OR_RETURN(std::set<std::string> required,
                      GroupsFromProto("required_groups", wire.required_groups()));
  PublishVersion publish{
      wire.session(), Version(wire.version()), {wire.label(), std::move(required)}, {}};
  if (wire.has_snapshot_seconds()) {
    WB_RETURN_IF_ERROR(CheckSeconds("snapshot_seconds", wire.snapshot_seconds()));
    publish.snapshot_seconds = wire.snapshot_seconds();
  }
  return publish;
}

absl::StatusOr<ToLeader> Read(const v1::AcceptVersion& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  return AcceptVersion{wire.session(), Version(wire.version())};
}

absl::StatusOr<ToLeader> Read(const v1::GiveUpVersion& wire) {
  WB_RETURN_IF_ERROR(CheckSession(wire.session()));
  WB_RETURN_IF_ERROR(CheckVersion(wire.version()));
  WB_RETURN_IF_ERROR(CheckLength("reason", wire.reason(), kMaxTextBytes));
  return GiveUpVersion{wire.session(), Version(wire.version()), wire.reason()};
}

absl::StatusOr<ToLeader> Read(const v1::AttemptPrepared& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  return AttemptPrepared{AttemptId(wire.attempt())};
}

absl::StatusOr<ToLeader> Read(const v1::AttemptStaged& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  return AttemptStaged{AttemptId(wire.attempt()),
                       {wire.tcp_bytes(), wire.shm_bytes(), wire.local_bytes()}};
}

absl::StatusOr<ToLeader> Read(const v1::AttemptFailed& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  absl::Status status = StatusFromProto(wire.status());
  if (status.ok()) return WrongField("status", "OK in a failure");
  return AttemptFailed{AttemptId(wire.attempt()), std::move(status)};
}

absl::StatusOr<ToLeader> Read(const v1::AttemptAborted& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  return AttemptAborted{AttemptId(wire.attempt())};
}

absl::StatusOr<ToLeader> Read(const v1::AttemptCommitted& wire) {
  WB_RETURN_IF_ERROR(CheckAttempt(wire.attempt()));
  return AttemptCommitted{AttemptId(wire.attempt())};
}

void Write(const ClusterHello& value, v1::ClusterRequest& wire) {
  v1::ClusterHello& hello = *wire.mutable_hello();
  hello.set_node(value.node);
  hello.set_incarnation(value.incarnation.value());
  hello.set_data_address(value.data_address);
  hello.set_fabric(value.fabric);
  hello.set_protocol(kProtocol);
  hello.set_host(value.host);
  hello.set_pid(value.pid);
}

/// The worker itself, without what its equal replicas have as well.
Registration IdentityOf(const Registration& registration) {
  Registration identity;
  identity.job = registration.job;
  identity.layout.role = registration.layout.role;
  identity.layout.name = registration.layout.name;
  identity.layout.node = registration.layout.node;
  return identity;
}

void Write(const RegisterWorker& value, v1::ClusterRequest& wire) {
  v1::RegisterWorker& message = *wire.mutable_register_worker();
  message.set_session(value.session);
  message.set_incarnation(value.incarnation.value());
  message.set_world_size(value.world_size);
  message.set_epoch(value.epoch.value());
  message.set_held_version(value.held_version.value());
  message.set_memory(ToProto(value.memory));
  message.set_attempt(value.attempt.value());
  for (const GroupCommit& commit : value.commits) {
    v1::GroupCommit& wire_commit = *message.add_commits();
    wire_commit.set_group(commit.group);
    wire_commit.set_version(commit.version.value());
  }
  if (value.contents.bytes == 0) {
    *message.mutable_layout() = ToProto(*value.registration);
    return;
  }
  *message.mutable_layout() = ToProto(IdentityOf(*value.registration));
  message.mutable_contents()->set_sha256(value.contents.sha256);
  message.mutable_contents()->set_bytes(value.contents.bytes);
}

/// A text in which a worker has a say, as long as the leader takes one: a longer one would end the
/// stream, for all workers of this daemon.
std::string Fitting(const std::string& text) {
  std::string cut = text.substr(0, kMaxTextBytes);
  if (const std::optional<std::size_t> fault = Utf8Fault(cut)) cut.resize(*fault);
  return cut;
}

void Write(const UnregisterWorker& value, v1::ClusterRequest& wire) {
  wire.mutable_unregister_worker()->set_session(value.session);
  wire.mutable_unregister_worker()->set_reason(Fitting(value.reason));
  wire.mutable_unregister_worker()->set_left(value.left);
}

void Write(const PublishVersion& value, v1::ClusterRequest& wire) {
  wire.mutable_publish()->set_session(value.session);
  wire.mutable_publish()->set_version(value.version.value());
  wire.mutable_publish()->set_label(Fitting(value.options.label));
  for (const std::string& group : value.options.required_groups) {
    wire.mutable_publish()->add_required_groups(group);
  }
  if (value.snapshot_seconds.has_value()) {
    wire.mutable_publish()->set_snapshot_seconds(*value.snapshot_seconds);
  }
}

void Write(const AcceptVersion& value, v1::ClusterRequest& wire) {
  wire.mutable_accept()->set_session(value.session);
  wire.mutable_accept()->set_version(value.version.value());
}

void Write(const GiveUpVersion& value, v1::ClusterRequest& wire) {
  wire.mutable_give_up()->set_session(value.session);
  wire.mutable_give_up()->set_version(value.version.value());
  wire.mutable_give_up()->set_reason(Fitting(value.reason));
}

void Write(const AttemptPrepared& value, v1::ClusterRequest& wire) {
  wire.mutable_prepared()->set_attempt(value.attempt.value());
}

void Write(const AttemptStaged& value, v1::ClusterRequest& wire) {
  v1::AttemptStaged& message = *wire.mutable_staged();
  message.set_attempt(value.attempt.value());
  message.set_tcp_bytes(value.bytes.tcp);
  message.set_shm_bytes(value.bytes.shm);
  message.set_local_bytes(value.bytes.local);
}

void Write(const AttemptFailed& value, v1::ClusterRequest& wire) {
  wire.mutable_failed()->set_attempt(value.attempt.value());
  *wire.mutable_failed()->mutable_status() = ToProto(value.status);
}

void Write(const AttemptAborted& value, v1::ClusterRequest& wire) {
  wire.mutable_aborted()->set_attempt(value.attempt.value());
}

void Write(const AttemptCommitted& value, v1::ClusterRequest& wire) {
  wire.mutable_committed()->set_attempt(value.attempt.value());
}

void Write(const Heartbeat& /*value*/, v1::ClusterRequest& wire) {
  wire.mutable_heartbeat();
}

}  // namespace

v1::ClusterRequest ToProto(const ToLeader& message, Term term) {
  v1::ClusterRequest wire;
  wire.set_term(term.value());
  std::visit([&wire](const auto& value) { Write(value, wire); }, message);
  return wire;
}

absl::StatusOr<ToLeader> ToLeaderFromProto(const v1::ClusterRequest& wire) {
  switch (wire.body_case()) {
    case v1::ClusterRequest::kHello:
      return Read(wire.hello());
    case v1::ClusterRequest::kRegisterWorker:
      return Read(wire.register_worker());
    case v1::ClusterRequest::kUnregisterWorker:
      return Read(wire.unregister_worker());
    case v1::ClusterRequest::kPublish:
      return Read(wire.publish());
    case v1::ClusterRequest::kAccept:
      return Read(wire.accept());
    case v1::ClusterRequest::kGiveUp:
      return Read(wire.give_up());
    case v1::ClusterRequest::kPrepared:
      return Read(wire.prepared());
    case v1::ClusterRequest::kStaged:
      return Read(wire.staged());
    case v1::ClusterRequest::kFailed:
      return Read(wire.failed());
    case v1::ClusterRequest::kAborted:
      return Read(wire.aborted());
    case v1::ClusterRequest::kCommitted:
      return Read(wire.committed());
    case v1::ClusterRequest::kHeartbeat:
      return Heartbeat{};
    case v1::ClusterRequest::kContentsPart:  // part of a message: put together before it is read
    case v1::ClusterRequest::BODY_NOT_SET:
      break;
  }
  return WrongField("body", "is none that protocol 1 knows");
}

const char* NameOf(const v1::ClusterRequest& wire) {
  const auto* field =
      v1::ClusterRequest::descriptor()->FindFieldByNumber(static_cast<int>(wire.body_case()));
  return field == nullptr ? "nothing" : field->name().c_str();
}

}  // namespace wb
