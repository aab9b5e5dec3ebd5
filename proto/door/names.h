#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"

namespace wb {

// The rules for names that come from outside, and how such a name is shown in a text. Stateless.

/// What is wrong with the name of a job, tensor, param or buffer, to be read after the name's
/// role ("is empty, want ..."); nothing when it is 1..kMaxNameBytes bytes of valid UTF-8 without
/// control characters.
[[nodiscard]] std::optional<std::string> NameFault(std::string_view name);

/// The same for a group or node: [A-Za-z0-9._-]+.
[[nodiscard]] std::optional<std::string> TokenFault(std::string_view name);

/// The name as a text may show it: control characters and broken UTF-8 escaped, cut where longer
/// than a name may be.
[[nodiscard]] std::string Shown(std::string_view name);

/// Debian's Abseil has a string_view of its own.
inline absl::string_view Absl(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace wb
