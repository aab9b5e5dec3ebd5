#include "transport/ucx/ucx_endpoints.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "planner/base/status_macros.h"
#include "transport/ucx/ucx_calls.h"
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

/// The transports that carry an endpoint's messages and their payloads, as UCX describes it: the
/// lanes used for "am" (small messages) or "am_bw" (payloads). Other lanes carry nothing of ours:
/// the listener's connection, the connection's set-up, remote reads.
std::vector<std::string> MessageLanes(const std::string& description) {
  std::vector<std::string> carrying;
  for (const absl::string_view line : absl::StrSplit(description, '\n')) {
    // "lane[1]:  1:posix/memory.0 md[1]  -> md[1]/posix/sysdev[255] am am_bw#0 keepalive"
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" #"), absl::SkipEmpty());
    if (words.size() < 2 || !absl::StartsWith(words[0], "lane[")) continue;
    const bool ours = std::any_of(words.begin() + 2, words.end(), [](absl::string_view use) {
      return use == "am" || use == "am_bw";
    });
    if (!ours) continue;
    const std::pair<absl::string_view, absl::string_view> numbered =
        absl::StrSplit(words[1], absl::MaxSplits(':', 1));
    carrying.emplace_back(numbered.second.substr(0, numbered.second.rfind('.')));
  }
  return carrying;
}

}  // namespace

UcxEndpoints::UcxEndpoints(ucp_worker_h worker, std::vector<LaneTraits> lanes, Numbers numbers)
    : worker_(worker),
      lanes_(std::move(lanes)),
      own_nonce_(numbers.nonce),
      next_id_(numbers.first) {}

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

absl::StatusOr<EndpointId> UcxEndpoints::Connect(const UcxAddress& peer, FabricPath path) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&peer.listener);
  params.sockaddr.addrlen = sizeof(peer.listener);
  WB_ASSIGN_OR_RETURN(const EndpointId id, Create(params, peer.nonce));
  UcxEndpoint& made = *Find(id);
  made.shown = true;
  made.wanted = path;
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
  if (endpoint.lane != nullptr) return absl::OkStatus();
  WB_ASSIGN_OR_RETURN(const std::string description, Describe(endpoint.ep));
  const std::vector<std::string> carrying = MessageLanes(description);
  std::vector<std::string> allowed;
  for (const LaneTraits& lane : lanes_) {
    if (endpoint.wanted.value_or(lane.path) != lane.path) continue;
    allowed.push_back(lane.device);
    if (carrying.size() == 1 && carrying[0] == lane.device) endpoint.lane = &lane;
  }
  if (endpoint.lane != nullptr) {
    spdlog::debug("ucx: endpoint {} runs on {}, {} bytes a segment", endpoint.id.value(),
                  endpoint.lane->device, endpoint.lane->segment_bytes);
    return absl::OkStatus();
  }
  spdlog::error("ucx: an endpoint with a lane that is not wanted:\n{}", description);
  return absl::InternalError(
      absl::StrCat("ucx: the endpoint runs on ",
                   carrying.empty() ? "nothing known" : absl::StrJoin(carrying, " and "), ", want ",
                   absl::StrJoin(allowed, " or ")));
}

void UcxEndpoints::Close(UcxEndpoint& endpoint) {
  by_handle_.erase(endpoint.ep);
  ++closed_;
  const ucs_status_ptr_t request =
      CloseByForce(std::exchange(endpoint.ep, nullptr), &UcxEndpoints::OnClosed, &endpoint);
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
