#pragma once

#include <cstdint>
#include <string>

#include <netinet/in.h>

#include "absl/status/statusor.h"

namespace wb {

/// What a UCX fabric's address says: where its listener is, and the number that proves to it that a
/// message comes from someone who was given the address, for this very fabric and not for one that
/// had the port before.
///
/// As text: "ucx2:<IPv4>:<port>:<nonce>:<host>:<checksum of all before>", the last three of 16 hex
/// digits each.
struct UcxAddress {
  sockaddr_in listener{};
  std::uint64_t nonce = 0;
  std::uint64_t host = 0;  // HostIdentity where it takes shared memory, 0 where it does not
};

[[nodiscard]] std::string EncodeAddress(const UcxAddress& address);

/// INVALID_ARGUMENT for anything that EncodeAddress cannot have written. UCX sees nothing else.
absl::StatusOr<UcxAddress> DecodeAddress(const std::string& text);

}  // namespace wb
