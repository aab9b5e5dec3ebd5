#include "transport/ucx/ucx_engine.h"

#include <cstring>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <spdlog/spdlog.h>
#include <ucp/api/ucp.h>

#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"
#include "transport/ucx/ucx_status.h"

namespace wb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kCloseTime{2};
constexpr int kProgressSteps = 32;  // between two looks at what has happened

/// What endpoints may run on.
std::vector<LaneTraits> AllowedLanes(const UcxSelf& self, const UcxStack& stack) {
  std::vector<LaneTraits> lanes;
  if (self.shm()) {
    lanes.push_back({FabricPath::kShm, "shm", "posix/memory", stack.shm_segment_bytes});
  }
  if (self.transports != "shm") {
    lanes.push_back({FabricPath::kTcp, "tcp", absl::StrCat("tcp/", self.interface.name),
                     stack.tcp_segment_bytes});
  }
  return lanes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UcxEngine>> UcxEngine::Create(const UcxEngineParts& parts) {
  WB_ASSIGN_OR_RETURN(UcxStack stack, OpenUcxStack({parts.self.interface.name, parts.self.shm()}));
  std::unique_ptr<UcxEngine> engine(new UcxEngine(std::move(stack), parts));
  if (parts.self.host != 0) {
    WB_RETURN_IF_ERROR(engine->OpenProbe());
  }
  WB_RETURN_IF_ERROR(engine->Listen(parts));
  return engine;
}

UcxEngine::UcxEngine(UcxStack stack, const UcxEngineParts& parts)
    : stack_(std::move(stack)),
      endpoints_(stack_.worker.get(),
                 AllowedLanes(parts.self, stack_),
                 {parts.self.nonce, parts.first_endpoint}),
      messages_(stack_.worker.get(), endpoints_, parts.regions, parts.traits) {}

UcxEngine::~UcxEngine() {
  std::vector<FabricEvent> events;
  const absl::Status closed = Close(absl::CancelledError("fabric: going away"), events);
  if (!closed.ok()) spdlog::error("{}", closed.ToString());
}

void UcxEngine::OnConnection(ucp_conn_request_h request, void* argument) {
  static_cast<UcxEngine*>(argument)->endpoints_.Queue(request);
}

/// Peers open the queue as we do.
absl::Status UcxEngine::OpenProbe() {
  absl::StatusOr<std::unique_ptr<QueueProbe>> probe = QueueProbe::Open(stack_.worker.get());
  if (probe.ok()) {
    probe_ = *std::move(probe);
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("this process cannot be reached through shared memory, want /proc of its own "
                   "PID namespace: ",
                   probe.status().message()));
}

absl::Status UcxEngine::Listen(const UcxEngineParts& parts) {
  WB_RETURN_IF_ERROR(messages_.Listen());
  sockaddr_in wanted{};
  wanted.sin_family = AF_INET;
  wanted.sin_addr = parts.self.interface.address;
  wanted.sin_port = htons(parts.port);
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&wanted);
  params.sockaddr.addrlen = sizeof(wanted);
  params.conn_handler.cb = &UcxEngine::OnConnection;
  params.conn_handler.arg = this;
  ucp_listener_h raw = nullptr;
  WB_RETURN_IF_ERROR(
      FromUcs(ucp_listener_create(stack_.worker.get(), &params, &raw), "ucx: ucp_listener_create"));
  listener_.Reset(raw);
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  WB_RETURN_IF_ERROR(FromUcs(ucp_listener_query(raw, &attributes), "ucx: ucp_listener_query"));
  std::memcpy(&listens_at_, &attributes.sockaddr, sizeof(listens_at_));
  return absl::OkStatus();
}

void UcxEngine::End(UcxEndpoint& endpoint, const absl::Status& why) {
  if (endpoint.ended) return;
  endpoints_.End(endpoint, why);
  messages_.EndOperations(endpoint);
}

void UcxEngine::EndAndTell(UcxEndpoint& endpoint, const absl::Status& why) {
  End(endpoint, why);
  if (endpoint.shown) {
    messages_.AddEvent({FabricEvent::Kind::kEndpointFailed, 0, endpoint.id, why});
  }
}

void UcxEngine::EndFailed() {
  std::vector<std::pair<EndpointId, absl::Status>> failed = messages_.TakeOffenders();
  for (const EndpointId id : std::exchange(failed_, {})) {
    failed.emplace_back(id, FromUcs(*endpoints_.Find(id)->failed, "ucx: the peer is gone"));
  }
  for (const auto& [id, why] : failed) {
    UcxEndpoint* const endpoint = endpoints_.Find(id);
    if (endpoint == nullptr || endpoint->ended) continue;
    EndAndTell(*endpoint, why);
    if (!endpoint->shown) {
      spdlog::warn("ucx: a connection ended before its first message: {}", why.ToString());
    }
  }
}

bool UcxEngine::Progress(std::vector<FabricEvent>& events) {
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

absl::StatusOr<bool> UcxEngine::Arm() const {
  const ucs_status_t status = ucp_worker_arm(stack_.worker.get());
  if (status == UCS_ERR_BUSY) return false;
  WB_RETURN_IF_ERROR(FromUcs(status, "ucx: ucp_worker_arm"));
  return true;
}

std::uint64_t UcxEngine::shm_arrivals() const {
  return messages_.shm_arrivals() + (probe_ == nullptr ? 0 : probe_->arrivals());
}

absl::Status UcxEngine::Probe() {
  return probe_->Send();
}

void UcxEngine::EndAll(const absl::Status& why) {
  for (const EndpointId id : endpoints_.Ids()) {
    UcxEndpoint& endpoint = *endpoints_.Find(id);
    if (!endpoint.ended) EndAndTell(endpoint, why);
  }
  if (probe_ != nullptr) probe_->Close();
}

bool UcxEngine::closed() const {
  return endpoints_.empty() && (probe_ == nullptr || probe_->closed());
}

absl::Status UcxEngine::Close(const absl::Status& why, std::vector<FabricEvent>& events) {
  const Clock::time_point deadline = Clock::now() + kCloseTime;
  messages_.SetReceiver(nullptr);
  endpoints_.Settle(listener_.get(), failed_);  // UCX wants no connection left over when
  listener_.Reset();                            // its listener goes
  EndAll(why);
  while (true) {
    if (Progress(events)) continue;
    if (closed()) return absl::OkStatus();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) break;
    WB_ASSIGN_OR_RETURN(const bool armed, Arm());
    pollfd watched{wakeup_fd(), POLLIN, 0};
    if (armed) poll(&watched, 1, static_cast<int>(left));
  }
  return absl::DeadlineExceededError(absl::StrCat("ucx: ", endpoints_.Ids().size(),
                                                  " endpoints were not closed within ",
                                                  kCloseTime.count(), " s"));
}

}  // namespace wb
