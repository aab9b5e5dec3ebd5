#pragma once

namespace wb {

/// Sends the log lines of gRPC and Protocol Buffers to ours: what they take for an error, such as a
/// TLS handshake that failed, is a warning of ours. Once per process; more calls do nothing.
void RouteGrpcLog();

}  // namespace wb
