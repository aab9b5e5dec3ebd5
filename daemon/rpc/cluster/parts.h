#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace wb {

/// Layouts and plans larger than this go through the cluster door in parts of at most so much, so
/// that no message is larger for a larger model.
inline constexpr std::size_t kPartBytes = std::size_t{256} * 1024;

/// Calls `send` with the parts of `bytes` and their offsets, in order.
inline void ForEachPart(std::string_view bytes,
                        absl::FunctionRef<void(std::uint64_t, std::string_view)> send) {
  for (std::size_t at = 0; at < bytes.size(); at += kPartBytes) {
    send(at, bytes.substr(at, kPartBytes));
  }
}

/// Adds a part at `offset` to what has come before, of which there will be `most` bytes at most.
/// INVALID_ARGUMENT or RESOURCE_EXHAUSTED says what is wrong with it: empty, too large, out of
/// order, or too many. Memory grows by what has arrived, never by what was announced.
[[nodiscard]] absl::Status AddPart(std::uint64_t offset,
                                   std::string_view part,
                                   std::uint64_t most,
                                   std::string& bytes);

}  // namespace wb
