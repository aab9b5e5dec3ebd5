#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/rpc/grpc_options.h"
#include "daemon/rpc/ops/status_source.h"
#include "daemon/rpc/tcp_address.h"

namespace wb {

struct OpsServerOptions {
  std::string socket;                // control.sock, claimed in the run directory
  std::optional<TcpAddress> listen;  // control.listen
  GrpcOptions grpc;
};

/// The ops door: StatusService, health and reflection over gRPC, on a Unix socket of mode 0660 and
/// maybe a TCP address (with mutual TLS where grpc.tls is set). Thread-safe.
class OpsServer {
 public:
  /// `source` outlives the server. UNAVAILABLE when an address cannot be had.
  static absl::StatusOr<std::unique_ptr<OpsServer>> Start(const OpsServerOptions& options,
                                                          StatusSource& source);
  OpsServer(const OpsServer&) = delete;
  OpsServer& operator=(const OpsServer&) = delete;
  ~OpsServer();

  /// With the real port.
  const std::optional<TcpAddress>& address() const { return address_; }
  /// What the health service answers from now on; not serving before the first call. Not during
  /// Shutdown.
  void SetServing(bool serving);
  /// Idempotent.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  struct State;
  OpsServer();
  std::unique_ptr<State> state_;
  std::optional<TcpAddress> address_;
};

}  // namespace wb
