#include "daemon/rpc/wire_values.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "planner/base/status_macros.h"
#include "planner/model/layout.h"

namespace wb {

absl::StatusOr<MemoryState> MemoryStateFromProto(v1::MemoryState wire) {
  switch (wire) {
    case v1::MEMORY_EMPTY:
      return MemoryState::kEmpty;
    case v1::MEMORY_VALID:
      return MemoryState::kValid;
    case v1::MEMORY_INVALID:
      return MemoryState::kInvalid;
    case v1::MEMORY_IN_DOUBT:
      return MemoryState::kInDoubt;
    default:
      return absl::InvalidArgumentError(absl::StrCat("memory: state ", static_cast<int>(wire),
                                                     ", want empty, valid, invalid or in doubt"));
  }
}

v1::MemoryState ToProto(MemoryState state) {
  switch (state) {
    case MemoryState::kEmpty:
      return v1::MEMORY_EMPTY;
    case MemoryState::kValid:
      return v1::MEMORY_VALID;
    case MemoryState::kInvalid:
      return v1::MEMORY_INVALID;
    case MemoryState::kInDoubt:
      return v1::MEMORY_IN_DOUBT;
  }
  return v1::MEMORY_STATE_UNSPECIFIED;
}

std::string_view MemoryStateName(MemoryState state) {
  switch (state) {
    case MemoryState::kEmpty:
      return "empty";
    case MemoryState::kValid:
      return "valid";
    case MemoryState::kInvalid:
      return "invalid";
    case MemoryState::kInDoubt:
      return "in doubt";
  }
  return "?";
}

absl::Status CheckHeld(MemoryState state, Version held) {
  const bool names_one = state == MemoryState::kValid || state == MemoryState::kInDoubt;
  const bool may_name_one = names_one || state == MemoryState::kInvalid;
  if ((held.value() == 0 && names_one) || (held.value() != 0 && !may_name_one)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "held_version: %d does not fit memory that is %s", held.value(), MemoryStateName(state)));
  }
  return absl::OkStatus();
}

absl::Status WrongField(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s", field, what));
}

absl::Status CheckLength(std::string_view field, const std::string& text, std::size_t limit) {
  if (text.size() <= limit) return absl::OkStatus();
  return WrongField(field, absl::StrFormat("%d bytes, want at most %d", text.size(), limit));
}

absl::Status CheckName(std::string_view field, const std::string& name) {
  if (name.empty()) return WrongField(field, "is empty");
  WB_RETURN_IF_ERROR(CheckLength(field, name, kMaxNameBytes));
  for (const char c : name) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
    if (!fine) return WrongField(field, "holds a character outside [A-Za-z0-9._-]");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> GroupsFromProto(
    std::string_view field, const google::protobuf::RepeatedPtrField<std::string>& wire) {
  if (wire.size() > kMaxRequiredGroups) {
    return WrongField(
        field, absl::StrFormat("%d groups, want at most %d", wire.size(), kMaxRequiredGroups));
  }
  for (const std::string& name : wire) WB_RETURN_IF_ERROR(CheckName(field, name));
  return std::set<std::string>(wire.begin(), wire.end());
}

absl::Status CheckSession(const std::string& session) {
  if (session.size() != kSessionIdBytes) {
    return WrongField("session", absl::StrFormat("%d characters, want 32", session.size()));
  }
  for (const char c : session) {
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (!hex) return WrongField("session", "is not lower case hex");
  }
  return absl::OkStatus();
}

absl::Status CheckVersion(std::uint64_t version) {
  return version == 0 ? WrongField("version", "0, want >= 1") : absl::OkStatus();
}

absl::Status CheckAttempt(std::uint64_t attempt) {
  return attempt == 0 ? WrongField("attempt", "0, want an attempt") : absl::OkStatus();
}

absl::Status CheckSeconds(std::string_view field, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) return absl::OkStatus();
  return WrongField(field, absl::StrFormat("%f, want seconds >= 0", seconds));
}

absl::Status CheckIncarnation(std::uint64_t incarnation) {
  return incarnation == 0 ? WrongField("incarnation", "0, want a random number") : absl::OkStatus();
}

absl::Status CheckWorldSize(std::int32_t world_size) {
  if (world_size < 1 || static_cast<std::size_t>(world_size) > kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrFormat("world_size: %d, want 1..%d", world_size, kMaxWorkers));
  }
  return absl::OkStatus();
}

}  // namespace wb
