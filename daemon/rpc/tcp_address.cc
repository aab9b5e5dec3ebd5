#include "daemon/rpc/tcp_address.h"

#include <array>
#include <charconv>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wb {
namespace {

absl::Status NoAddress(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::string_view(text.data(), text.size()),
                   "' is no address, want IP:PORT, [IPV6]:PORT or localhost:PORT"));
}

bool IsIp(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(family, host.c_str(), bytes.data()) == 1;
}

std::optional<std::uint16_t> ParsePort(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return port;
}

}  // namespace

std::string TcpAddress::ToString() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<TcpAddress> ParseTcpAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return NoAddress(text);
  const std::optional<std::uint16_t> port = ParsePort(text.substr(colon + 1));
  if (!port.has_value()) return NoAddress(text);
  std::string host(text.substr(0, colon));
  if (host == "localhost") host = "127.0.0.1";
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsIp(AF_INET6, host)) return NoAddress(text);
  } else if (!IsIp(AF_INET, host)) {
    return NoAddress(text);
  }
  return TcpAddress{std::move(host), *port};
}

bool IsLoopback(const TcpAddress& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6{};
  return ::inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

bool IsWildcard(const TcpAddress& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6) != 0;
}

TcpAddress FromHere(const TcpAddress& address) {
  if (!IsWildcard(address)) return address;
  const bool v6 = address.host.find(':') != std::string::npos;
  return {v6 ? "::1" : "127.0.0.1", address.port};
}

}  // namespace wb
