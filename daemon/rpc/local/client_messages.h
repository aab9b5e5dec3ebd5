#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/move/session_calls.h"
#include "proto/v1.h"

namespace wb {

// Messages of the local door: their names, and the daemon's replies as packets. Stateless.

/// "publish", "layout_part", ...; "a message that protocol 1 does not know" without a body.
[[nodiscard]] std::string NameOf(const v1::ClientMessage& message);

[[nodiscard]] v1::DaemonMessage StatusReply(std::uint64_t id, const absl::Status& status);
[[nodiscard]] v1::DaemonMessage ReplyTo(std::uint64_t id,
                                        Version version,
                                        const PublishResult& result);
[[nodiscard]] v1::DaemonMessage ReplyTo(std::uint64_t id,
                                        Version version,
                                        const ReceiveResult& result);
[[nodiscard]] v1::DaemonMessage ReplyTo(std::uint64_t id, const absl::StatusOr<Version>& result);
[[nodiscard]] v1::DaemonMessage GoMessage(Version version);
[[nodiscard]] v1::DaemonMessage StagedMessage(Version version, AttemptId attempt);
[[nodiscard]] v1::DaemonMessage SnapshotMessage(Version version, double copy_seconds);
[[nodiscard]] v1::DaemonMessage OutcomeMessage(Version version, bool committed);

/// The message as one packet of at most kMaxPacketBytes. Texts are shortened where it would be
/// larger, outcomes of groups dropped from the end where that is not enough; both leave a mark.
[[nodiscard]] std::string ToPacket(v1::DaemonMessage message);

}  // namespace wb
