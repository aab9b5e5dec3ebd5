#include "transport/ucx/ucx_fabric.h"

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/random.h>

#include <arpa/inet.h>
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

#include "planner/base/fd_handle.h"
#include "planner/base/status_macros.h"
#include "transport/ucx/host_identity.h"
#include "transport/ucx/network_interface.h"
#include "transport/ucx/stuck_queue.h"
#include "transport/ucx/ucx_address.h"
#include "transport/ucx/ucx_engine.h"

namespace wb {
namespace {

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

}  // namespace

/// An engine, and the next one when its queue is stuck: under the same address, so that peers find
/// it again, and behind the same descriptor.
class UcxFabric::State {
 public:
  State(UcxSelf self, const RegionTable& regions)
      : traits_{self.transports, kMaxHeaderBytes, kMaxMessageBytes},
        self_(std::move(self)),
        regions_(regions) {}

  absl::Status Start();
  absl::StatusOr<EndpointId> Connect(const UcxAddress& peer);
  void SetReceiver(Receiver receiver);
  bool Progress(std::vector<FabricEvent>& events);
  absl::StatusOr<bool> Arm();

  const FabricTraits& traits() const { return traits_; }
  const std::string& address() const { return address_; }
  int wakeup_fd() const { return wakeup_.get(); }
  UcxEngine& engine() { return *engine_; }

 private:
  absl::Status Open(std::uint16_t port, std::uint64_t first_endpoint);
  absl::Status NoteBusy();
  void Renew(std::vector<FabricEvent>& events);

  const FabricTraits traits_;
  UcxSelf self_;
  const RegionTable& regions_;
  std::string address_;
  Receiver receiver_;
  FdHandle wakeup_;  // readable when the engine's is
  std::unique_ptr<UcxEngine> engine_;
  StuckQueue queue_;
  std::uint64_t arrivals_ = 0;  // of the engine, when last looked at
  bool stuck_ = false;
  absl::Status broken_;  // why there is no engine after the last
};

absl::Status UcxFabric::State::Start() {
  wakeup_ = FdHandle(epoll_create1(EPOLL_CLOEXEC));
  if (!wakeup_) return absl::ErrnoToStatus(errno, "ucx: epoll_create1");
  absl::Status opened = Open(/*port=*/0, /*first_endpoint=*/1);
  if (absl::IsFailedPrecondition(opened) && self_.transports == "auto" && self_.host != 0) {
    spdlog::warn("data.transports: auto without shared memory: {}", opened.ToString());
    self_.host = 0;
    opened = Open(/*port=*/0, /*first_endpoint=*/1);
  }
  WB_RETURN_IF_ERROR(opened);
  UcxAddress address;
  address.listener = engine_->listener();
  address.nonce = self_.nonce;
  address.host = self_.host;
  address_ = EncodeAddress(address);
  return absl::OkStatus();
}

absl::Status UcxFabric::State::Open(std::uint16_t port, std::uint64_t first_endpoint) {
  WB_ASSIGN_OR_RETURN(std::unique_ptr<UcxEngine> engine,
                      UcxEngine::Create({self_, regions_, traits_, port, first_endpoint}));
  engine->messages().SetReceiver(receiver_);
  epoll_event readable{};
  readable.events = EPOLLIN;
  if (epoll_ctl(wakeup_.get(), EPOLL_CTL_ADD, engine->wakeup_fd(), &readable) != 0) {
    return absl::ErrnoToStatus(errno, "ucx: epoll_ctl");
  }
  engine_ = std::move(engine);
  return absl::OkStatus();
}

void UcxFabric::State::SetReceiver(Receiver receiver) {
  receiver_ = std::move(receiver);
  engine_->messages().SetReceiver(receiver_);
}

absl::StatusOr<EndpointId> UcxFabric::State::Connect(const UcxAddress& peer) {
  const bool shares = self_.host != 0 && peer.host == self_.host;
  if (self_.transports == "shm" && !shares) {
    return absl::FailedPreconditionError(absl::StrCat(
        "data.transports: shm, but the peer ",
        peer.host == 0 ? "takes no shared memory" : "is not in this host's namespaces"));
  }
  WB_RETURN_IF_ERROR(broken_);
  return engine_->endpoints().Connect(peer, shares ? FabricPath::kShm : FabricPath::kTcp);
}

bool UcxFabric::State::Progress(std::vector<FabricEvent>& events) {
  if (stuck_) {
    Renew(events);
    return true;
  }
  const bool any = engine_->Progress(events);
  if (const std::uint64_t arrivals = engine_->shm_arrivals(); arrivals != arrivals_) {
    arrivals_ = arrivals;
    queue_.Moves();
  }
  return any;
}

absl::StatusOr<bool> UcxFabric::State::Arm() {
  WB_RETURN_IF_ERROR(broken_);
  if (stuck_ || engine_->has_work()) return false;
  WB_ASSIGN_OR_RETURN(const bool armed, engine_->Arm());
  if (armed) {
    queue_.Moves();
  } else if (self_.host != 0) {
    WB_RETURN_IF_ERROR(NoteBusy());
  }
  return armed;
}

absl::Status UcxFabric::State::NoteBusy() {
  const StuckQueue::Verdict verdict = queue_.Busy(StuckQueue::Clock::now());
  stuck_ = verdict == StuckQueue::Verdict::kStuck;
  if (verdict != StuckQueue::Verdict::kProbe) return absl::OkStatus();
  return engine_->Probe();
}

/// Every connection ends and is to be made anew: the queue is all peers'.
void UcxFabric::State::Renew(std::vector<FabricEvent>& events) {
  stuck_ = false;
  queue_.Moves();
  arrivals_ = 0;
  const absl::Status why = absl::UnavailableError(
      "ucx: a process was killed, or stands still, amid sending through shared memory, and nothing "
      "came by it any more");
  spdlog::error("{}; all connections are made anew", why.ToString());
  const absl::Status closed = engine_->Close(why, events);
  broken_ = closed.ok() ? Open(ntohs(engine_->listener().sin_port), engine_->endpoints().next_id())
                        : closed;
}

absl::StatusOr<std::unique_ptr<UcxFabric>> UcxFabric::Create(const UcxOptions& options,
                                                             const RegionTable& regions) {
  WB_RETURN_IF_ERROR(CheckTransports(options.transports));
  UcxSelf self;
  self.transports = options.transports;
  WB_ASSIGN_OR_RETURN(self.interface, FindInterface(options.interface));
  WB_ASSIGN_OR_RETURN(self.nonce, DrawNonce());
  if (self.shm()) {
    WB_ASSIGN_OR_RETURN(self.host, HostIdentity());
  }
  auto state = std::make_unique<State>(std::move(self), regions);
  WB_RETURN_IF_ERROR(state->Start());
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
  state_->SetReceiver(std::move(receiver));
}

absl::StatusOr<EndpointId> UcxFabric::Connect(const std::string& address) {
  WB_ASSIGN_OR_RETURN(const UcxAddress peer, DecodeAddress(address));
  return state_->Connect(peer);
}

absl::Status UcxFabric::Send(EndpointId endpoint,
                             std::span<const std::byte> header,
                             const MemoryRef& payload,
                             std::uint64_t tag) {
  UcxEndpoint* const found = state_->engine().endpoints().Find(endpoint);
  if (found == nullptr || found->ended) {
    return absl::FailedPreconditionError(
        absl::StrCat("fabric: endpoint ", endpoint.value(), " is not open"));
  }
  return state_->engine().messages().Send(*found, header, payload, tag);
}

absl::Status UcxFabric::Accept(AnnouncementId id, const Landing& landing) {
  return state_->engine().messages().Accept(id, landing);
}

absl::Status UcxFabric::Refuse(AnnouncementId id, absl::Status reason) {
  return state_->engine().messages().Refuse(id, reason);
}

const LaneTraits* UcxFabric::lane(EndpointId endpoint) const {
  const UcxEndpoint* const found = state_->engine().endpoints().Find(endpoint);
  return found == nullptr ? nullptr : found->lane;
}

void UcxFabric::CloseForced(EndpointId endpoint) {
  UcxEndpoint* const found = state_->engine().endpoints().Find(endpoint);
  if (found == nullptr) return;
  state_->engine().End(
      *found, absl::CancelledError(
                  absl::StrCat("fabric: endpoint ", endpoint.value(), " was closed by its owner")));
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
