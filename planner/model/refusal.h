#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace wb {

/// One reason why an input is refused. `text` is whole by itself: it names the thing, the value
/// and what was wanted; `kind` is a short stable word ("uncovered", "conflict", "dtype", "shape",
/// "rank", "name", "limit", "json", ...); `tensor` and `worker` are empty when the reason has none.
struct Refusal {
  std::string kind;
  std::string tensor;
  std::string worker;
  std::string text;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// Every reason found, in a stable order. Empty means accepted.
using Refusals = std::vector<Refusal>;

/// At most this many reasons, and this many bytes, travel in a status text.
inline constexpr std::size_t kMaxReasonsInStatus = 20;
inline constexpr std::size_t kMaxStatusBytes = 8192;

/// INVALID_ARGUMENT whose text is the first reasons, one a line, and "and N more"; OK when empty.
[[nodiscard]] absl::Status ToStatus(const Refusals& refusals);

}  // namespace wb
