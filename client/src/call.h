#pragma once

#include <cstdint>
#include <string>

#include "client/src/deadline.h"
#include "client/src/errors.h"

namespace wb::client {

/// A call in progress, as texts name it.
struct Call {
  std::string what;  // "Publish of version 7"
  std::uint64_t version = 0;
  Milliseconds timeout{0};
  Deadline deadline;  // the daemon's; ours is kDaemonGrace later

  Milliseconds elapsed() const { return timeout - Remaining(deadline); }  // at most the timeout
};

/// One that begins now.
[[nodiscard]] inline Call CallOf(const std::string& verb,
                                 std::uint64_t version,
                                 Milliseconds timeout) {
  return Call{verb + " of version " + std::to_string(version), version, timeout,
              SteadyClock::now() + timeout};
}

/// In seconds: "0.2".
[[nodiscard]] inline std::string Tenths(Milliseconds time) {
  const auto ms = time.count();
  return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100);
}
/// "0.2 s".
[[nodiscard]] inline std::string Seconds(Milliseconds time) {
  return Tenths(time) + " s";
}

[[nodiscard]] inline Result<void> CheckVersion(const Call& call) {
  if (call.version >= 1) return {};
  return Error{WB_INVALID_ARGUMENT, call.what + ": versions begin at 1", {}};
}

/// A label or a reason: UTF-8 of at most 1024 bytes.
[[nodiscard]] inline Result<void> CheckText(const std::string& what, const std::string& text) {
  constexpr std::size_t kMaxTextBytes = 1024;
  if (text.size() <= kMaxTextBytes) return CheckUtf8(what, text);
  return Invalid(what + " has " + std::to_string(text.size()) + " bytes, want at most " +
                 std::to_string(kMaxTextBytes));
}

}  // namespace wb::client
