#pragma once

namespace wb {

/// Sends gRPC's own log lines to ours: what it takes for an error, such as a TLS handshake that
/// failed, is a warning of ours, each text once a
/// minute. Once per process; more calls do nothing.
void RouteGrpcLog();

}  // namespace wb
