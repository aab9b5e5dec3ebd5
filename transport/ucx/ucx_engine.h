#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <netinet/in.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "transport/fabric.h"
#include "transport/memory/region.h"
#include "transport/ucx/network_interface.h"
#include "transport/ucx/queue_probe.h"
#include "transport/ucx/ucx_address.h"
#include "transport/ucx/ucx_endpoints.h"
#include "transport/ucx/ucx_handles.h"
#include "transport/ucx/ucx_messages.h"
#include "transport/ucx/ucx_stack.h"

namespace wb {

/// What a UCX fabric offers to peers in its address, and what it runs on.
struct UcxSelf {
  std::string transports;
  NetworkInterface interface;
  std::uint64_t nonce = 0;
  std::uint64_t host = 0;  // 0: no shared memory

  bool shm() const { return transports != "tcp"; }
};

/// What makes a UcxEngine. `regions` and `traits` outlive it.
struct UcxEngineParts {
  const UcxSelf& self;
  const RegionTable& regions;
  const FabricTraits& traits;
  std::uint16_t port = 0;            // of the listener; 0: one that is free
  std::uint64_t first_endpoint = 1;  // endpoints are numbered from it on
};

/// One ucp_worker with its listener, its endpoints and their messages: all of a UCX fabric that
/// does not outlive the worker. Loop-confined.
class UcxEngine {
 public:
  /// FAILED_PRECONDITION when peers could not reach this process through shared memory.
  static absl::StatusOr<std::unique_ptr<UcxEngine>> Create(const UcxEngineParts& parts);
  /// Closes what Close has not.
  ~UcxEngine();
  UcxEngine(const UcxEngine&) = delete;
  UcxEngine& operator=(const UcxEngine&) = delete;

  /// Where it listens.
  const sockaddr_in& listener() const { return listens_at_; }
  int wakeup_fd() const { return stack_.wakeup_fd; }
  UcxEndpoints& endpoints() { return endpoints_; }
  UcxMessages& messages() { return messages_; }

  bool Progress(std::vector<FabricEvent>& events);
  /// Something has happened that Progress is to deal with.
  bool has_work() const { return endpoints_.unsettled() || messages_.has_events(); }
  /// False when UCX is busy; else its descriptor becomes readable when there is something to do.
  absl::StatusOr<bool> Arm() const;
  void End(UcxEndpoint& endpoint, const absl::Status& why);
  /// What has come through shared memory, a probe among it; grows.
  std::uint64_t shm_arrivals() const;
  /// Sends a message to itself through shared memory, unless one is on its way.
  absl::Status Probe();
  /// Ends every endpoint, and takes no new ones. DEADLINE_EXCEEDED when some are not closed after
  /// two seconds: until the engine is gone UCX may still touch their memory.
  absl::Status Close(const absl::Status& why, std::vector<FabricEvent>& events);

 private:
  UcxEngine(UcxStack stack, const UcxEngineParts& parts);
  absl::Status OpenProbe();
  absl::Status Listen(const UcxEngineParts& parts);
  static void OnConnection(ucp_conn_request_h request, void* argument);
  /// Ends it, and tells whoever has seen it.
  void EndAndTell(UcxEndpoint& endpoint, const absl::Status& why);
  void EndFailed();
  void EndAll(const absl::Status& why);
  bool closed() const;

  // Destroyed bottom-up: the listener, then what its callbacks reach, then the worker.
  UcxStack stack_;
  UcxEndpoints endpoints_;
  UcxMessages messages_;
  std::unique_ptr<QueueProbe> probe_;  // null without shared memory with peers
  UcpListenerHandle listener_;
  sockaddr_in listens_at_{};
  std::vector<EndpointId> failed_;
};

}  // namespace wb
