#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace wb {

/// At most so many travel beside one status.
inline constexpr std::size_t kMaxCulprits = 8;

/// Who is late, or whose end was the reason: as data what the text of a status says. What is not
/// known, or does not apply, is empty.
struct Culprit {
  enum class Reason : std::uint8_t {
    kLate,  // waited for
    kGone,  // its worker, daemon or connection has ended
  };
  Reason reason = Reason::kLate;
  std::string worker;  // "engine0/2"
  std::string group;
  std::string node;
  std::string host;   // of the node's daemon
  std::string stage;  // what it was to do: "accept", "prepare", "move", ...
  double since_seconds = 0;
  friend bool operator==(const Culprit&, const Culprit&) = default;
};

/// "LATE", "GONE".
[[nodiscard]] const char* Name(Culprit::Reason reason);

/// `status` with `culprits` beside its text, instead of those that it had; the first kMaxCulprits.
/// An OK status carries none.
[[nodiscard]] absl::Status WithCulprits(absl::Status status, std::span<const Culprit> culprits);
[[nodiscard]] std::vector<Culprit> CulpritsOf(const absl::Status& status);

/// `status` with another text; what travels beside the text stays.
[[nodiscard]] absl::Status Reworded(const absl::Status& status, absl::string_view text);

}  // namespace wb
