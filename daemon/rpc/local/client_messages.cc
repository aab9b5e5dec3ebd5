#include "daemon/rpc/local/client_messages.h"

#include "absl/strings/str_cat.h"

#include "daemon/rpc/local/packet_socket.h"
#include "proto/convert.h"

namespace wb {
namespace {

constexpr std::size_t kShortTextBytes = 512;  // of a status text in a message that is too large
constexpr std::size_t kNoteBytes = 64;        // room for what is said about dropped outcomes

constexpr int kShortInfos = 2;

void Shorten(v1::Status& status) {
  if (status.message().size() > kShortTextBytes) {
    status.set_message(absl::StrCat(status.message().substr(0, kShortTextBytes), " ..."));
  }
  status.clear_details();
  while (status.infos_size() > kShortInfos) status.mutable_infos()->RemoveLast();
}

}  // namespace

std::string NameOf(const v1::ClientMessage& message) {
  const auto* field =
      v1::ClientMessage::descriptor()->FindFieldByNumber(static_cast<int>(message.body_case()));
  return field == nullptr ? "a message that protocol 1 does not know" : field->name();
}

v1::DaemonMessage StatusReply(std::uint64_t id, const absl::Status& status) {
  v1::DaemonMessage message;
  message.set_id(id);
  *message.mutable_status() = ToProto(status);
  return message;
}

v1::DaemonMessage ReplyTo(std::uint64_t id, Version version, const PublishResult& result) {
  v1::DaemonMessage message = StatusReply(id, result.status);
  v1::PublishReply& reply = *message.mutable_publish();
  reply.set_version(version.value());
  reply.set_bytes_sent(result.bytes_sent);
  reply.set_wait_seconds(result.wait_seconds);
  reply.set_move_seconds(result.move_seconds);
  reply.set_pack_seconds(result.times.pack_seconds);
  reply.set_wire_seconds(result.times.wire_seconds);
  reply.set_copy_seconds(result.times.copy_seconds);
  reply.set_snapshot_seconds(result.snapshot_seconds);
  for (const GroupOutcome& outcome : result.outcomes) {
    v1::GroupOutcome& wire = *reply.add_outcomes();
    wire.set_group(outcome.group);
    *wire.mutable_status() = ToProto(outcome.status);
  }
  return message;
}

v1::DaemonMessage ReplyTo(std::uint64_t id, Version version, const ReceiveResult& result) {
  v1::DaemonMessage message = StatusReply(id, result.status);
  v1::ReceiveReply& reply = *message.mutable_receive();
  reply.set_version(version.value());
  reply.set_bytes_received(result.bytes_received);
  reply.set_wait_seconds(result.wait_seconds);
  reply.set_move_seconds(result.move_seconds);
  reply.set_wire_seconds(result.times.wire_seconds);
  reply.set_scatter_seconds(result.times.scatter_seconds);
  reply.set_copy_seconds(result.times.copy_seconds);
  reply.set_in_doubt(result.in_doubt);
  return message;
}

v1::DaemonMessage ReplyTo(std::uint64_t id, const absl::StatusOr<Version>& result) {
  v1::DaemonMessage message = StatusReply(id, result.status());
  if (result.ok()) message.mutable_wait_for_version()->set_version(result->value());
  return message;
}

v1::DaemonMessage GoMessage(Version version) {
  v1::DaemonMessage message;
  message.mutable_go()->set_version(version.value());
  return message;
}

v1::DaemonMessage StagedMessage(Version version, AttemptId attempt) {
  v1::DaemonMessage message;
  message.mutable_staged()->set_version(version.value());
  message.mutable_staged()->set_attempt(attempt.value());
  return message;
}

v1::DaemonMessage SnapshotMessage(Version version, double copy_seconds) {
  v1::DaemonMessage message;
  message.mutable_snapshot()->set_version(version.value());
  message.mutable_snapshot()->set_copy_seconds(copy_seconds);
  return message;
}

v1::DaemonMessage OutcomeMessage(Version version, bool committed) {
  v1::DaemonMessage message;
  message.mutable_outcome()->set_version(version.value());
  message.mutable_outcome()->set_committed(committed);
  return message;
}

std::string ToPacket(v1::DaemonMessage message) {
  if (message.ByteSizeLong() <= kMaxPacketBytes) return message.SerializeAsString();
  Shorten(*message.mutable_status());
  if (!message.has_publish()) return message.SerializeAsString();
  auto& outcomes = *message.mutable_publish()->mutable_outcomes();
  for (v1::GroupOutcome& outcome : outcomes) Shorten(*outcome.mutable_status());
  int dropped = 0;
  std::size_t bytes = message.ByteSizeLong();
  while (bytes > kMaxPacketBytes - kNoteBytes && !outcomes.empty()) {
    bytes -= outcomes.rbegin()->ByteSizeLong();
    outcomes.RemoveLast();
    ++dropped;
  }
  if (dropped > 0) {
    message.mutable_status()->add_details(absl::StrCat("and ", dropped, " more groups"));
  }
  return message.SerializeAsString();
}

}  // namespace wb
