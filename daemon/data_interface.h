#pragma once

#include <string>

#include "absl/status/status.h"

namespace wb {

/// Whether weights may travel over network interface `name`: it exists, is up and has an IPv4
/// address, and all its addresses are private (loopback, RFC 1918, shared, link-local, unique
/// local), unless `insecure`: whoever reaches the data port can write this daemon's memory. The
/// status names the interface and the address.
[[nodiscard]] absl::Status CheckDataInterface(const std::string& name, bool insecure);

/// The loopback address that other daemons would be given for interface `name`; empty when it is
/// another one, or none.
[[nodiscard]] std::string LoopbackOf(const std::string& name);

/// "eth0 10.0.0.7" for people; the name alone where it has no address.
[[nodiscard]] std::string DescribeInterface(const std::string& name);

/// Whether an address is private, from its text.
[[nodiscard]] bool IsPrivateAddress(const std::string& ip);

}  // namespace wb
