#include "transport/ucx/network_interface.h"

#include <cerrno>
#include <cstring>
#include <set>

#include <ifaddrs.h>
#include <net/if.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/unique_handle.h"

namespace wb {
namespace {

struct InterfaceListTraits {
  using Raw = ifaddrs*;
  static constexpr Raw kNull = nullptr;
  static void Close(Raw list) noexcept { freeifaddrs(list); }
};

}  // namespace

absl::StatusOr<NetworkInterface> FindInterface(const std::string& name) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return absl::ErrnoToStatus(errno, "data.interface: getifaddrs");
  const UniqueHandle<InterfaceListTraits> list(first);
  std::set<std::string> present;
  bool up = false;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    present.insert(entry->ifa_name);
    if (name != entry->ifa_name) continue;
    up = up || (entry->ifa_flags & IFF_UP) != 0;
    if (!up || entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, entry->ifa_addr, sizeof(address));
    return NetworkInterface{name, address.sin_addr};
  }
  if (!present.contains(name)) {
    return absl::NotFoundError(absl::StrCat("data.interface: there is no interface '", name,
                                            "'; there are ", absl::StrJoin(present, ", ")));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("data.interface: interface '", name, "' ",
                   up ? "has no IPv4 address" : "is down, want it up"));
}

}  // namespace wb
