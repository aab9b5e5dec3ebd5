#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wb {

inline constexpr std::size_t kSha256Bytes = 32;

/// SHA-256: what workers say is not to be trusted, and must not stand in for what others say.
/// Stateless; thread-safe.
[[nodiscard]] std::string Sha256(std::string_view bytes);

}  // namespace wb
