#pragma once

#include <string>

#include <netinet/in.h>

#include "absl/status/statusor.h"

namespace wb {

/// A network device of this host that is up, with the address that peers reach it by.
struct NetworkInterface {
  std::string name;
  in_addr address{};
};

/// NOT_FOUND lists the interfaces that there are; FAILED_PRECONDITION says what the named one lacks
/// (it is down, or has no IPv4 address).
absl::StatusOr<NetworkInterface> FindInterface(const std::string& name);

}  // namespace wb
