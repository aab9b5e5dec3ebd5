#include "transport/ucx/ucx_endpoints.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"
#include "transport/ucx/ucx_status.h"

namespace wb {
namespace {

// More than any cluster needs; bounds what strangers on the data network can make us hold.
constexpr std::size_t kMaxEndpoints = 4096;

/// What UCX says about an endpoint's lanes, one a line.
absl::StatusOr<std::string> Describe(ucp_ep_h ep) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return absl::ErrnoToStatus(errno, "ucx: open_memstream");
  ucp_ep_print_info(ep, stream);
  static_cast<void>(std::fclose(stream));  // to memory: nothing to lose
  std::string description(text, bytes);
  std::free(text);  // NOLINT(cppcoreguidelines-no-malloc): open_memstream's contract
  return description;
}

}  // namespace

UcxEndpoints::UcxEndpoints(ucp_worker_h worker, std::string lane, std::uint64_t own_nonce)
    : worker_(worker), lane_(std::move(lane)), own_nonce_(own_nonce) {}

void UcxEndpoints::OnError(void* argument, ucp_ep_h /*ep*/, ucs_status_t status) {
  auto& endpoint = *static_cast<UcxEndpoint*>(argument);
  if (endpoint.failed.has_value()) return;
  endpoint.failed = status;
  endpoint.table->failures_.push_back(endpoint.id);
}

void UcxEndpoints::OnClosed(void* request, ucs_status_t /*status*/, void* argument) {
  auto& endpoint = *static_cast<UcxEndpoint*>(argument);
  endpoint.closing = false;
  ucp_request_free(request);
}

absl::StatusOr<EndpointId> UcxEndpoints::Create(ucp_ep_params_t& params, std::uint64_t nonce) {
  auto endpoint = std::make_unique<UcxEndpoint>();
  endpoint->table = this;
  endpoint->id = EndpointId(next_id_++);
  endpoint->nonce = nonce;
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;  // without it nothing can be closed by force
  params.err_handler.cb = &UcxEndpoints::OnError;
  params.err_handler.arg = endpoint.get();
  WB_RETURN_IF_ERROR(FromUcs(ucp_ep_create(worker_, &params, &endpoint->ep), "ucx: ucp_ep_create"));
  const EndpointId id = endpoint->id;
  by_handle_[endpoint->ep] = endpoint.get();
  by_id_.emplace(id, std::move(endpoint));
  return id;
}

absl::StatusOr<EndpointId> UcxEndpoints::Connect(const UcxAddress& peer) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&peer.listener);
  params.sockaddr.addrlen = sizeof(peer.listener);
  WB_ASSIGN_OR_RETURN(const EndpointId id, Create(params, peer.nonce));
  Find(id)->shown = true;
  return id;
}

void UcxEndpoints::Accept(ucp_conn_request_h request, ucp_listener_h listener) {
  if (by_id_.size() >= kMaxEndpoints) {
    spdlog::warn("ucx: refused a connection: {} endpoints are open", by_id_.size());
    static_cast<void>(ucp_listener_reject(listener, request));
    return;
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request;
  if (const absl::StatusOr<EndpointId> accepted = Create(params, own_nonce_); !accepted.ok()) {
    spdlog::warn("ucx: cannot accept a connection: {}", accepted.status().ToString());
  }
}

UcxEndpoint* UcxEndpoints::Find(EndpointId id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.get();
}

UcxEndpoint* UcxEndpoints::FindOpen(ucp_ep_h ep) {
  const auto found = by_handle_.find(ep);
  return found == by_handle_.end() || found->second->ended ? nullptr : found->second;
}

void UcxEndpoints::End(UcxEndpoint& endpoint, absl::Status why) {
  if (endpoint.ended.has_value()) return;
  endpoint.ended = std::move(why);
  ending_.push_back(endpoint.id);
}

absl::Status UcxEndpoints::CheckLane(UcxEndpoint& endpoint) const {
  if (endpoint.lane_checked) return absl::OkStatus();
  endpoint.lane_checked = true;
  WB_ASSIGN_OR_RETURN(const std::string lanes, Describe(endpoint.ep));
  if (lanes.find(lane_) != std::string::npos) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("ucx: the endpoint does not run on ", lane_, " but on\n", lanes));
}

void UcxEndpoints::Close(UcxEndpoint& endpoint) {
  by_handle_.erase(endpoint.ep);
  ++closed_;
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;  // a flush of a failed endpoint never ends
  params.cb.send = &UcxEndpoints::OnClosed;
  params.user_data = &endpoint;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(endpoint.ep, nullptr), &params);
  endpoint.closing = UCS_PTR_IS_PTR(request);
  if (UCS_PTR_IS_ERR(request)) {
    spdlog::error("ucx: closing endpoint {}: {}", endpoint.id.value(),
                  ucs_status_string(UCS_PTR_STATUS(request)));
  }
}

void UcxEndpoints::ForgetClosed() {
  for (auto it = by_id_.begin(); it != by_id_.end() && closed_ > 0;) {
    const auto current = it++;
    const UcxEndpoint& endpoint = *current->second;
    if (endpoint.ep != nullptr || endpoint.closing || endpoint.requests > 0) continue;
    by_id_.erase(current);
    --closed_;
  }
}

void UcxEndpoints::Settle(ucp_listener_h listener, std::vector<EndpointId>& failed) {
  for (ucp_conn_request_h request : std::exchange(arriving_, {})) Accept(request, listener);
  for (const EndpointId id : std::exchange(failures_, {})) {
    if (const UcxEndpoint* endpoint = Find(id); endpoint != nullptr && !endpoint->ended) {
      failed.push_back(id);
    }
  }
  for (const EndpointId id : std::exchange(ending_, {})) Close(*Find(id));
  if (closed_ > 0) ForgetClosed();
}

std::vector<EndpointId> UcxEndpoints::Ids() const {
  std::vector<EndpointId> ids;
  ids.reserve(by_id_.size());
  for (const auto& [id, endpoint] : by_id_) ids.push_back(id);
  return ids;
}

}  // namespace wb
