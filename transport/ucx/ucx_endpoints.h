#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "transport/fabric.h"
#include "transport/ucx/ucx_address.h"

namespace wb {

class UcxEndpoints;

/// Our end of a connection. Its life: open, then ended (the peer is gone, or CloseForced), then
/// closed in UCX, then forgotten once its last request has completed.
struct UcxEndpoint {
  UcxEndpoints* table = nullptr;
  EndpointId id;
  ucp_ep_h ep = nullptr;               // null from the close on
  std::uint64_t nonce = 0;             // of the side that listened
  std::optional<absl::Status> ended;   // why; nothing is sent or taken any more
  std::optional<ucs_status_t> failed;  // what UCX's error callback said
  std::size_t requests = 0;            // of UCX that have not completed
  bool closing = false;                // the close has not completed
  std::optional<FabricPath> wanted;    // what it must run on; unset: what UCX has chosen
  const LaneTraits* lane = nullptr;    // what it runs on, once that was checked
  bool shown = false;                  // our caller has seen its id
};

/// The endpoints of one ucp_worker, those we connected and those we accepted. UCX's callbacks only
/// note what they are told; all that changes an endpoint happens in Settle. Loop-confined.
class UcxEndpoints {
 public:
  struct Numbers {
    std::uint64_t nonce = 0;  // of those that are accepted
    std::uint64_t first = 1;  // endpoints are numbered from it on
  };
  /// `lanes` are what endpoints may run on.
  UcxEndpoints(ucp_worker_h worker, std::vector<LaneTraits> lanes, Numbers numbers);
  ~UcxEndpoints() = default;
  UcxEndpoints(const UcxEndpoints&) = delete;
  UcxEndpoints& operator=(const UcxEndpoints&) = delete;

  /// The endpoint must come to run on `path`.
  absl::StatusOr<EndpointId> Connect(const UcxAddress& peer, FabricPath path);
  /// From the listener's callback; accepted in Settle.
  void Queue(ucp_conn_request_h request) { arriving_.push_back(request); }

  UcxEndpoint* Find(EndpointId id);
  /// Null for one that UCX knows and we have ended.
  UcxEndpoint* FindOpen(ucp_ep_h ep);
  /// Marks it ended; its UCX endpoint is closed in the next Settle.
  void End(UcxEndpoint& endpoint, absl::Status why);
  /// Finds out what the endpoint runs on. INTERNAL names what it is when that is not what it must
  /// be. Call it once it is connected.
  absl::Status CheckLane(UcxEndpoint& endpoint) const;

  /// Accepts who has come, closes what has ended, forgets what is over. Not within a callback of
  /// UCX. Appends the open endpoints that UCX has given up to `failed`.
  void Settle(ucp_listener_h listener, std::vector<EndpointId>& failed);
  /// Whether Settle has something to do.
  bool unsettled() const { return !arriving_.empty() || !failures_.empty() || !ending_.empty(); }
  bool empty() const { return by_id_.empty(); }
  /// No endpoint has this number yet, nor any above it.
  std::uint64_t next_id() const { return next_id_; }
  std::vector<EndpointId> Ids() const;

 private:
  static void OnError(void* argument, ucp_ep_h ep, ucs_status_t status);
  static void OnClosed(void* request, ucs_status_t status, void* argument);

  absl::StatusOr<EndpointId> Create(ucp_ep_params_t& params, std::uint64_t nonce);
  void Accept(ucp_conn_request_h request, ucp_listener_h listener);
  void Close(UcxEndpoint& endpoint);
  void ForgetClosed();

  ucp_worker_h worker_;
  std::vector<LaneTraits> lanes_;
  std::uint64_t own_nonce_;
  std::uint64_t next_id_;
  absl::flat_hash_map<EndpointId, std::unique_ptr<UcxEndpoint>> by_id_;
  absl::flat_hash_map<ucp_ep_h, UcxEndpoint*> by_handle_;
  std::vector<ucp_conn_request_h> arriving_;
  std::vector<EndpointId> failures_;
  std::vector<EndpointId> ending_;  // to be closed
  std::size_t closed_ = 0;          // not forgotten yet
};

}  // namespace wb
