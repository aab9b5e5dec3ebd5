#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"

namespace wb {

/// The chunk that a status is about. The mover knows numbers only; who holds the plan can say of
/// which tensors its bytes are.
struct FailedChunk {
  std::uint32_t stream = 0;  // as StreamNumber
  std::uint32_t chunk = 0;
  friend bool operator==(const FailedChunk&, const FailedChunk&) = default;
};

/// `status`, which is not OK, with the chunk beside its text.
[[nodiscard]] absl::Status WithFailedChunk(absl::Status status, const FailedChunk& chunk);
/// Both apart again.
[[nodiscard]] std::pair<absl::Status, std::optional<FailedChunk>> TakeFailedChunk(
    absl::Status status);

}  // namespace wb
