#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wb {

/// An IP address and a port, as configured: "127.0.0.1:7000", "[::1]:0", "localhost:7000" (which
/// is taken for 127.0.0.1: no name is ever looked up). Port 0 lets the kernel choose.
struct TcpAddress {
  std::string host;  // IPv4 or IPv6 literal, without brackets
  std::uint16_t port = 0;
  friend bool operator==(const TcpAddress&, const TcpAddress&) = default;
  /// "127.0.0.1:7000", "[::1]:7000".
  std::string ToString() const;
};

/// INVALID_ARGUMENT says what was wanted.
[[nodiscard]] absl::StatusOr<TcpAddress> ParseTcpAddress(std::string_view text);

/// Whether only this node can reach it (127.0.0.0/8, ::1).
[[nodiscard]] bool IsLoopback(const TcpAddress& address);

/// Whether it stands for every address of this node (0.0.0.0, ::).
[[nodiscard]] bool IsWildcard(const TcpAddress& address);

/// Where this node itself reaches what listens on `address`.
[[nodiscard]] TcpAddress FromHere(const TcpAddress& address);

}  // namespace wb
