#pragma once

#include <memory>
#include <string>

#include <grpcpp/channel.h>

#include "absl/status/statusor.h"

namespace wb {

/// A daemon's ops door, and who we are to it over TCP.
struct DaemonAddress {
  std::string daemon;    // unix:PATH or HOST:PORT
  std::string tls_cert;  // paths: all three, or none
  std::string tls_key;
  std::string tls_ca;
  std::string tls_name;  // that the daemon's certificate must be for; empty: HOST
};

/// A channel to it; nothing is connected yet. INVALID_ARGUMENT where `daemon` is no address, a file
/// cannot be read, the three are not together, or a HOST that is not this one's loopback is to be
/// asked without TLS.
[[nodiscard]] absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const DaemonAddress& address);

}  // namespace wb
