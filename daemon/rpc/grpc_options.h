#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"

#include "daemon/rpc/tls/tls_identity.h"

namespace wb {

/// What every gRPC channel and server of the daemon is made with: no proxy, no shared port, our
/// message limit, pings that show a dead or stopped peer within `peer_timeout`, and over TCP mutual
/// TLS where there is an identity for it.
struct GrpcOptions {
  std::uint64_t message_bytes = 0;                // limits.message_bytes
  std::chrono::milliseconds peer_timeout{5'000};  // timeouts.peer
  std::shared_ptr<const TlsIdentity> tls = {};    // null: no TLS, and so loopback addresses only
};

/// What a message may have beside the layout or plan that limits.message_bytes bounds.
inline constexpr std::uint64_t kMessageOverheadBytes = std::uint64_t{64} * 1024;

/// The largest message that either side takes.
[[nodiscard]] int MaxMessageBytes(const GrpcOptions& options);

[[nodiscard]] grpc::ChannelArguments ChannelArgumentsFor(const GrpcOptions& options);
void Apply(const GrpcOptions& options, grpc::ServerBuilder& builder);

[[nodiscard]] grpc::Status ToGrpc(const absl::Status& status);
[[nodiscard]] absl::Status FromGrpc(const grpc::Status& status);

}  // namespace wb
