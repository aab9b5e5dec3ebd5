#include "daemon/data_interface.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace wb {
namespace {

struct FreeAddresses {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};
using Addresses = std::unique_ptr<ifaddrs, FreeAddresses>;

Addresses AllAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return nullptr;
  return Addresses(list);
}

std::string TextOf(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address.sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  } else if (address.sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  }
  if (bytes == nullptr) return "";
  const char* done =
      ::inet_ntop(address.sa_family, bytes, text.data(), static_cast<socklen_t>(text.size()));
  return done == nullptr ? "" : done;
}

std::vector<std::string> AddressesOf(const std::string& name) {
  std::vector<std::string> found;
  const Addresses all = AllAddresses();
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (name != one->ifa_name || one->ifa_addr == nullptr) continue;
    std::string text = TextOf(*one->ifa_addr);
    if (!text.empty()) found.push_back(std::move(text));
  }
  return found;
}

bool IsUp(const std::string& name) {
  const Addresses all = AllAddresses();
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    if (name == one->ifa_name) return (one->ifa_flags & IFF_UP) != 0;
  }
  return false;
}

bool IsV4(const std::string& ip) {
  in_addr v4{};
  return ::inet_pton(AF_INET, ip.c_str(), &v4) == 1;
}

bool IsPrivateV4(std::uint32_t ip) {
  const auto in = [ip](std::uint32_t network, int bits) {
    return (ip >> (32 - bits)) == (network >> (32 - bits));
  };
  return in(0x7f000000, 8) || in(0x0a000000, 8) || in(0xac100000, 12) || in(0xc0a80000, 16) ||
         in(0xa9fe0000, 16) || in(0x64400000, 10);
}

}  // namespace

bool IsPrivateAddress(const std::string& ip) {
  in_addr v4{};
  if (::inet_pton(AF_INET, ip.c_str(), &v4) == 1) return IsPrivateV4(ntohl(v4.s_addr));
  in6_addr v6{};
  if (::inet_pton(AF_INET6, ip.c_str(), &v6) != 1) return false;
  const bool unique_local = (v6.s6_addr[0] & 0xfe) == 0xfc;
  return unique_local || IN6_IS_ADDR_LOOPBACK(&v6) != 0 || IN6_IS_ADDR_LINKLOCAL(&v6) != 0;
}

absl::Status CheckDataInterface(const std::string& name, bool insecure) {
  if (::if_nametoindex(name.c_str()) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.interface: there is no interface '", name, "' on this node"));
  }
  if (!IsUp(name)) {
    return absl::InvalidArgumentError(absl::StrCat("data.interface: '", name, "' is down"));
  }
  const std::vector<std::string> addresses = AddressesOf(name);
  if (std::none_of(addresses.begin(), addresses.end(), IsV4)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.interface: '", name, "' has no IPv4 address, by which other daemons reach it"));
  }
  for (const std::string& address : addresses) {
    if (insecure || IsPrivateAddress(address)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "data.interface: '", name, "' has the public address ", address,
        ", want a private one: whoever reaches the data port can write this daemon's memory "
        "(data.insecure: true allows it)"));
  }
  return absl::OkStatus();
}

std::string LoopbackOf(const std::string& name) {
  for (const std::string& address : AddressesOf(name)) {
    if (IsV4(address)) return absl::StartsWith(address, "127.") ? address : "";
  }
  return "";
}

std::string DescribeInterface(const std::string& name) {
  const std::vector<std::string> addresses = AddressesOf(name);
  return addresses.empty() ? name : absl::StrCat(name, " ", addresses.front());
}

}  // namespace wb
