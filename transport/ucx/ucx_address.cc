#include "transport/ucx/ucx_address.h"

#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <arpa/inet.h>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

#include "transport/copy/checksum.h"

namespace wb {
namespace {

constexpr std::string_view kScheme = "ucx2:";
constexpr std::size_t kHexDigits = 16;
constexpr std::size_t kMaxAddressBytes = 96;  // longer than any address is

absl::Status NoAddress(const char* why) {
  return absl::InvalidArgumentError(absl::StrFormat("ucx: not an address of a fabric: %s", why));
}

std::uint64_t SumOf(std::string_view text) {
  return Checksum(std::as_bytes(std::span(text)));
}

template <typename Number>
bool Parse(std::string_view text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseIpv4(std::string_view text, in_addr& address) {
  std::array<char, INET_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size()) return false;
  std::memcpy(terminated.data(), text.data(), text.size());
  return inet_pton(AF_INET, terminated.data(), &address) == 1;
}

/// The parts of a text between its colons.
std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':')) {
    parts.push_back(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

std::string EncodeAddress(const UcxAddress& address) {
  std::array<char, INET_ADDRSTRLEN> ip{};
  inet_ntop(AF_INET, &address.listener.sin_addr, ip.data(), ip.size());
  const std::string text =
      absl::StrFormat("ucx2:%s:%d:%016x:%016x:", ip.data(), ntohs(address.listener.sin_port),
                      address.nonce, address.host);
  return absl::StrFormat("%s%016x", text, SumOf(text));
}

absl::StatusOr<UcxAddress> DecodeAddress(const std::string& text) {
  const std::string_view view = text;
  if (view.size() > kMaxAddressBytes) return NoAddress("too long");
  if (!view.starts_with(kScheme)) return NoAddress("it does not start with ucx2:");
  const std::vector<std::string_view> parts = Split(view.substr(kScheme.size()));
  if (parts.size() != 5 || parts[2].size() != kHexDigits || parts[3].size() != kHexDigits ||
      parts[4].size() != kHexDigits) {
    return NoAddress("want address, port, nonce, host and checksum");
  }
  std::uint64_t sum = 0;
  if (!Parse(parts[4], 16, sum) || sum != SumOf(view.substr(0, view.size() - kHexDigits))) {
    return NoAddress("its checksum is wrong");
  }
  UcxAddress address;
  std::uint16_t port = 0;
  if (!ParseIpv4(parts[0], address.listener.sin_addr) || !Parse(parts[1], 10, port) || port == 0 ||
      !Parse(parts[2], 16, address.nonce) || !Parse(parts[3], 16, address.host)) {
    return NoAddress("address, port, nonce or host cannot be read");
  }
  address.listener.sin_family = AF_INET;
  address.listener.sin_port = htons(port);
  return address;
}

}  // namespace wb
