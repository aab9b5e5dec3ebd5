#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/state/cluster_messages.h"
#include "proto/v1.h"

namespace wb {

/// Limits of texts on the wire, in bytes.
inline constexpr std::size_t kMaxTextBytes = std::size_t{8} * 1024;          // reasons, labels
inline constexpr std::size_t kMaxDataAddressBytes = std::size_t{64} * 1024;  // of a fabric
inline constexpr int kMaxRequiredGroups = 1024;
inline constexpr std::size_t kSessionIdBytes = 32;  // 128 bits in hex

// Small values that both doors read from the wire. Stateless; thread-safe.

/// INVALID_ARGUMENT for a state that protocol 1 does not know.
[[nodiscard]] absl::StatusOr<MemoryState> MemoryStateFromProto(v1::MemoryState wire);
[[nodiscard]] v1::MemoryState ToProto(MemoryState state);
/// "empty", "valid", "invalid", "in doubt".
[[nodiscard]] std::string_view MemoryStateName(MemoryState state);

/// A worker's memory holds a version exactly when it is valid or in doubt about it.
[[nodiscard]] absl::Status CheckHeld(MemoryState state, Version held);

/// INVALID_ARGUMENT "field: what".
[[nodiscard]] absl::Status WrongField(std::string_view field, std::string_view what);
/// The text has at most `limit` bytes.
[[nodiscard]] absl::Status CheckLength(std::string_view field,
                                       const std::string& text,
                                       std::size_t limit);
/// A node or group: [A-Za-z0-9._-]+, at most kMaxNameBytes.
[[nodiscard]] absl::Status CheckName(std::string_view field, const std::string& name);
/// Names of groups: at most kMaxRequiredGroups.
[[nodiscard]] absl::StatusOr<std::set<std::string>> GroupsFromProto(
    std::string_view field, const google::protobuf::RepeatedPtrField<std::string>& wire);
/// 32 lower case hex digits.
[[nodiscard]] absl::Status CheckSession(const std::string& session);
/// A version that exists: >= 1.
[[nodiscard]] absl::Status CheckVersion(std::uint64_t version);
[[nodiscard]] absl::Status CheckAttempt(std::uint64_t attempt);
[[nodiscard]] absl::Status CheckIncarnation(std::uint64_t incarnation);
/// Finite and not negative.
[[nodiscard]] absl::Status CheckSeconds(std::string_view field, double seconds);
/// Ranks of a group: 1..kMaxWorkers.
[[nodiscard]] absl::Status CheckWorldSize(std::int32_t world_size);

}  // namespace wb
