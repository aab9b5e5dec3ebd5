#include "transport/ucx/ucx_fabric.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/random.h>

#include <spdlog/spdlog.h>
#include <ucp/api/ucp.h>

#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"
#include "transport/ucx/host_identity.h"
#include "transport/ucx/network_interface.h"
#include "transport/ucx/ucx_address.h"
#include "transport/ucx/ucx_endpoints.h"
#include "transport/ucx/ucx_handles.h"
#include "transport/ucx/ucx_messages.h"
#include "transport/ucx/ucx_stack.h"
#include "transport/ucx/ucx_status.h"

namespace wb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kCloseTime{2};
constexpr int kProgressSteps = 32;  // between two looks at what has happened

absl::StatusOr<std::uint64_t> DrawNonce() {
  std::uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce)) {
    return absl::ErrnoToStatus(errno, "ucx: getrandom");
  }
  return nonce;
}

absl::Status CheckTransports(const std::string& transports) {
  if (transports == "tcp" || transports == "shm" || transports == "auto") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("data.transports: '", transports, "', want tcp, shm or auto"));
}

/// What endpoints may run on.
std::vector<LaneTraits> AllowedLanes(const std::string& transports,
                                     const std::string& interface,
                                     const UcxStack& stack) {
  std::vector<LaneTraits> lanes;
  if (transports != "tcp") {
    lanes.push_back({FabricPath::kShm, "shm", "posix/memory", stack.shm_segment_bytes});
  }
  if (transports != "shm") {
    lanes.push_back(
        {FabricPath::kTcp, "tcp", absl::StrCat("tcp/", interface), stack.tcp_segment_bytes});
  }
  return lanes;
}

}  // namespace

class UcxFabric::State {
 public:
  /// What it offers to peers in its address, and what it runs on.
  struct Self {
    std::string transports;
    NetworkInterface interface;
    std::uint64_t nonce = 0;
    std::uint64_t host = 0;  // 0: no shared memory
  };

  State(UcxStack stack, Self self, const RegionTable& regions)
      : traits_{self.transports, kMaxHeaderBytes, kMaxMessageBytes},
        stack_(std::move(stack)),
        self_(std::move(self)),
        endpoints_(stack_.worker.get(),
                   AllowedLanes(self_.transports, self_.interface.name, stack_),
                   self_.nonce),
        messages_(stack_.worker.get(), endpoints_, regions, traits_) {}
  ~State() { CloseAll(Clock::now() + kCloseTime); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  absl::Status Listen();
  absl::StatusOr<EndpointId> Connect(const UcxAddress& peer);
  bool Progress(std::vector<FabricEvent>& events);
  absl::StatusOr<bool> Arm();
  void End(UcxEndpoint& endpoint, const absl::Status& why);

  const FabricTraits& traits() const { return traits_; }
  const std::string& address() const { return address_; }
  int wakeup_fd() const { return stack_.wakeup_fd; }
  UcxEndpoints& endpoints() { return endpoints_; }
  UcxMessages& messages() { return messages_; }

 private:
  static void OnConnection(ucp_conn_request_h request, void* argument);
  void EndFailed();
  void CloseAll(Clock::time_point deadline);

  FabricTraits traits_;
  std::string address_;
  // Destroyed bottom-up: the listener, then what its callbacks reach, then the worker.
  UcxStack stack_;
  Self self_;
  UcxEndpoints endpoints_;
  UcxMessages messages_;
  UcpListenerHandle listener_;
  std::vector<EndpointId> failed_;
};

void UcxFabric::State::OnConnection(ucp_conn_request_h request, void* argument) {
  static_cast<State*>(argument)->endpoints_.Queue(request);
}

absl::StatusOr<EndpointId> UcxFabric::State::Connect(const UcxAddress& peer) {
  const bool shares = self_.host != 0 && peer.host == self_.host;
  if (self_.transports == "shm" && !shares) {
    return absl::FailedPreconditionError(absl::StrCat(
        "data.transports: shm, but the peer ",
        peer.host == 0 ? "takes no shared memory" : "is not in this host's namespaces"));
  }
  return endpoints_.Connect(peer, shares ? FabricPath::kShm : FabricPath::kTcp);
}

absl::Status UcxFabric::State::Listen() {
  WB_RETURN_IF_ERROR(messages_.Listen());
  sockaddr_in wanted{};
  wanted.sin_family = AF_INET;
  wanted.sin_addr = self_.interface.address;
  wanted.sin_port = 0;
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&wanted);
  params.sockaddr.addrlen = sizeof(wanted);
  params.conn_handler.cb = &State::OnConnection;
  params.conn_handler.arg = this;
  ucp_listener_h raw = nullptr;
  WB_RETURN_IF_ERROR(
      FromUcs(ucp_listener_create(stack_.worker.get(), &params, &raw), "ucx: ucp_listener_create"));
  listener_.Reset(raw);
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  WB_RETURN_IF_ERROR(FromUcs(ucp_listener_query(raw, &attributes), "ucx: ucp_listener_query"));
  UcxAddress address;
  std::memcpy(&address.listener, &attributes.sockaddr, sizeof(address.listener));
  address.nonce = self_.nonce;
  address.host = self_.host;
  address_ = EncodeAddress(address);
  return absl::OkStatus();
}

void UcxFabric::State::End(UcxEndpoint& endpoint, const absl::Status& why) {
  if (endpoint.ended) return;
  endpoints_.End(endpoint, why);
  messages_.EndOperations(endpoint);
}

void UcxFabric::State::EndFailed() {
  std::vector<std::pair<EndpointId, absl::Status>> failed = messages_.TakeOffenders();
  for (const EndpointId id : std::exchange(failed_, {})) {
    failed.emplace_back(id, FromUcs(*endpoints_.Find(id)->failed, "ucx: the peer is gone"));
  }
  for (const auto& [id, why] : failed) {
    UcxEndpoint* const endpoint = endpoints_.Find(id);
    if (endpoint == nullptr || endpoint->ended) continue;
    End(*endpoint, why);
    if (endpoint->shown) {
      messages_.AddEvent({FabricEvent::Kind::kEndpointFailed, 0, id, why});
    } else {
      spdlog::warn("ucx: a connection ended before its first message: {}", why.ToString());
    }
  }
}

bool UcxFabric::State::Progress(std::vector<FabricEvent>& events) {
  bool any = endpoints_.unsettled();
  endpoints_.Settle(listener_.get(), failed_);
  for (int i = 0; i < kProgressSteps && !messages_.has_events(); ++i) {
    if (ucp_worker_progress(stack_.worker.get()) == 0) break;
    any = true;
  }
  endpoints_.Settle(listener_.get(), failed_);
  EndFailed();
  any = any || messages_.has_events();
  messages_.TakeEvents(events);
  return any;
}

absl::StatusOr<bool> UcxFabric::State::Arm() {
  if (endpoints_.unsettled() || messages_.has_events()) return false;
  const ucs_status_t status = ucp_worker_arm(stack_.worker.get());
  if (status == UCS_ERR_BUSY) return false;
  WB_RETURN_IF_ERROR(FromUcs(status, "ucx: ucp_worker_arm"));
  return true;
}

void UcxFabric::State::CloseAll(Clock::time_point deadline) {
  messages_.SetReceiver(nullptr);
  endpoints_.Settle(listener_.get(), failed_);  // UCX wants no connection left over when
  listener_.Reset();                            // its listener goes
  for (const EndpointId id : endpoints_.Ids()) {
    End(*endpoints_.Find(id), absl::CancelledError("fabric: going away"));
  }
  std::vector<FabricEvent> events;
  while (true) {
    if (Progress(events)) continue;
    if (endpoints_.empty()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) break;
    const absl::StatusOr<bool> armed = Arm();
    if (!armed.ok()) break;
    pollfd watched{wakeup_fd(), POLLIN, 0};
    if (*armed) poll(&watched, 1, static_cast<int>(left));
  }
  spdlog::error("ucx: {} endpoints were not closed within {} s", endpoints_.Ids().size(),
                kCloseTime.count());
}

absl::StatusOr<std::unique_ptr<UcxFabric>> UcxFabric::Create(const UcxOptions& options,
                                                             const RegionTable& regions) {
  WB_RETURN_IF_ERROR(CheckTransports(options.transports));
  State::Self self;
  self.transports = options.transports;
  WB_ASSIGN_OR_RETURN(self.interface, FindInterface(options.interface));
  WB_ASSIGN_OR_RETURN(self.nonce, DrawNonce());
  const bool shm = options.transports != "tcp";
  if (shm) {
    WB_ASSIGN_OR_RETURN(self.host, HostIdentity());
  }
  WB_ASSIGN_OR_RETURN(UcxStack stack, OpenUcxStack({self.interface.name, shm}));
  auto state = std::make_unique<State>(std::move(stack), std::move(self), regions);
  WB_RETURN_IF_ERROR(state->Listen());
  return std::unique_ptr<UcxFabric>(new UcxFabric(std::move(state)));
}

UcxFabric::UcxFabric(std::unique_ptr<State> state) : state_(std::move(state)) {}

UcxFabric::~UcxFabric() = default;

const FabricTraits& UcxFabric::traits() const {
  return state_->traits();
}

const std::string& UcxFabric::address() const {
  return state_->address();
}

void UcxFabric::SetReceiver(Receiver receiver) {
  state_->messages().SetReceiver(std::move(receiver));
}

absl::StatusOr<EndpointId> UcxFabric::Connect(const std::string& address) {
  WB_ASSIGN_OR_RETURN(const UcxAddress peer, DecodeAddress(address));
  return state_->Connect(peer);
}

absl::Status UcxFabric::Send(EndpointId endpoint,
                             std::span<const std::byte> header,
                             const MemoryRef& payload,
                             std::uint64_t tag) {
  UcxEndpoint* const found = state_->endpoints().Find(endpoint);
  if (found == nullptr || found->ended) {
    return absl::FailedPreconditionError(
        absl::StrCat("fabric: endpoint ", endpoint.value(), " is not open"));
  }
  return state_->messages().Send(*found, header, payload, tag);
}

absl::Status UcxFabric::Accept(AnnouncementId id, const Landing& landing) {
  return state_->messages().Accept(id, landing);
}

absl::Status UcxFabric::Refuse(AnnouncementId id, absl::Status reason) {
  return state_->messages().Refuse(id, reason);
}

const LaneTraits* UcxFabric::lane(EndpointId endpoint) const {
  const UcxEndpoint* const found = state_->endpoints().Find(endpoint);
  return found == nullptr ? nullptr : found->lane;
}

void UcxFabric::CloseForced(EndpointId endpoint) {
  UcxEndpoint* const found = state_->endpoints().Find(endpoint);
  if (found == nullptr) return;
  state_->End(*found, absl::CancelledError(absl::StrCat("fabric: endpoint ", endpoint.value(),
                                                        " was closed by its owner")));
}

bool UcxFabric::Progress(std::vector<FabricEvent>& events) {
  return state_->Progress(events);
}

int UcxFabric::wakeup_fd() const {
  return state_->wakeup_fd();
}

absl::StatusOr<bool> UcxFabric::Arm() {
  return state_->Arm();
}

}  // namespace wb
