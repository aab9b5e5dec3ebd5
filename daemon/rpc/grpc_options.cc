#include "daemon/rpc/grpc_options.h"

#include <algorithm>
#include <limits>
#include <string>

#include <grpc/grpc.h>

#include "absl/strings/string_view.h"

namespace wb {
namespace {

using std::chrono::milliseconds;

struct Pings {
  int every_ms;
  int answer_within_ms;
};

/// Together below the time after which a silent peer counts as dead.
Pings PingsFor(milliseconds peer_timeout) {
  const std::int64_t bounded = std::clamp<std::int64_t>(peer_timeout.count(), 400, 3'600'000);
  return {static_cast<int>(bounded / 4), static_cast<int>(bounded / 2)};
}

}  // namespace

int MaxMessageBytes(const GrpcOptions& options) {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  const std::uint64_t layout = std::min(options.message_bytes, kMost - kMessageOverheadBytes);
  return static_cast<int>(layout + kMessageOverheadBytes);
}

grpc::ChannelArguments ChannelArgumentsFor(const GrpcOptions& options) {
  const Pings pings = PingsFor(options.peer_timeout);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(MaxMessageBytes(options));
  arguments.SetMaxSendMessageSize(MaxMessageBytes(options));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, pings.every_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, pings.answer_within_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Each try to connect is ours, with our own waits between them.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(pings.answer_within_ms));
  return arguments;
}

void Apply(const GrpcOptions& options, grpc::ServerBuilder& builder) {
  const Pings pings = PingsFor(options.peer_timeout);
  builder.SetMaxReceiveMessageSize(MaxMessageBytes(options));
  builder.SetMaxSendMessageSize(MaxMessageBytes(options));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, pings.every_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, pings.answer_within_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // For who connects and says nothing; gRPC's own is two minutes.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             pings.every_ms + pings.answer_within_ms);
  // Peers may be set to ping more often than we do; they are ours, not strangers.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

absl::Status FromGrpc(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()),
          absl::string_view(status.error_message())};
}

}  // namespace wb
