#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "daemon/leader/leader.h"
#include "daemon/rpc/grpc_options.h"
#include "daemon/rpc/tcp_address.h"
#include "daemon/state/cluster_messages.h"
#include "planner/model/ids.h"
#include "transport/loop/event_loop.h"

namespace wb {

/// The leader's side of the cluster door: a gRPC server with one stream per daemon.
///
/// Invariant: `events` hears of a stream first by its ClusterHello and last by OnPeerLost, all on
/// the leader's loop; messages of another term than the leader's are refused and counted. A worker
/// whose registration cannot be read is refused by name, any other such message ends its stream.
/// Send and Close never block and may come from any thread.
class ClusterServer final : public PeerLinks {
 public:
  /// `loop` outlives the server.
  ClusterServer(EventLoop& loop, Term term, const GrpcOptions& options);
  ClusterServer(const ClusterServer&) = delete;
  ClusterServer& operator=(const ClusterServer&) = delete;
  /// Shuts down; `events` hears nothing after it.
  ~ClusterServer() override;

  /// `events` outlives the server. UNAVAILABLE when the address cannot be had.
  absl::Status Listen(const TcpAddress& address, PeerEvents& events);
  /// With the real port.
  const TcpAddress& address() const { return address_; }
  void Send(PeerId peer, FromLeader message) override;
  void Pack(PrepareAttempt& message) const override;
  void Close(PeerId peer, const absl::Status& status) override;
  /// Ends all streams, at the latest by `deadline`. Idempotent.
  void Shutdown(std::chrono::system_clock::time_point deadline);
  /// Messages of other terms.
  std::uint64_t refused() const;
  /// Streams that have not said hello yet.
  std::size_t silent() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
  TcpAddress address_;
};

}  // namespace wb
