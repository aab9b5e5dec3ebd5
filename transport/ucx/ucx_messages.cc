#include "transport/ucx/ucx_messages.h"

#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"
#include "transport/fabric_checks.h"
#include "transport/ucx/ucx_calls.h"
#include "transport/ucx/ucx_stack.h"
#include "transport/ucx/ucx_status.h"

namespace wb {
namespace {

// What the sender's UCX is told of a refusal; the reason comes with our own answer.
constexpr ucs_status_t kRefused = UCS_ERR_REJECTED;

std::span<const std::byte> AsBytes(absl::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

UcxMessages::UcxMessages(ucp_worker_h worker,
                         UcxEndpoints& endpoints,
                         const RegionTable& regions,
                         const FabricTraits& traits)
    : worker_(worker), endpoints_(endpoints), regions_(regions), traits_(traits) {}

absl::Status UcxMessages::Listen() {
  WB_RETURN_IF_ERROR(SetMessageHandler(worker_, WireKind::kMessage, &UcxMessages::OnMessage, this));
  return SetMessageHandler(worker_, WireKind::kAnswer, &UcxMessages::OnAnswer, this);
}

absl::Status UcxMessages::Send(UcxEndpoint& endpoint,
                               std::span<const std::byte> header,
                               const MemoryRef& payload,
                               std::uint64_t tag) {
  WB_RETURN_IF_ERROR(CheckSendSizes(traits_, header.size(), payload.bytes));
  WB_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, ResolvePayload(regions_, payload));
  const auto [id, sending] = sending_.Take();
  static_cast<Operation&>(sending) = {this, id, endpoint.id, tag};
  sending.header.Assign({endpoint.nonce, id, 0}, header);
  sending.ucx_status = UCS_OK;
  sending.answered = false;

  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.flags = UCP_AM_SEND_FLAG_REPLY |
                 (bytes.size() < kRendezvousBytes ? UCP_AM_SEND_FLAG_EAGER : UCP_AM_SEND_FLAG_RNDV);
  params.cb.send = &UcxMessages::OnSent;
  params.user_data = &sending;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  const std::span<const std::byte> wire = sending.header.bytes();
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint.ep, static_cast<unsigned>(WireKind::kMessage), wire.data(),
                      wire.size(), bytes.data(), bytes.size(), &params);
  if (UCS_PTR_IS_ERR(request)) {
    sending_.Give(id);
    return FromUcs(UCS_PTR_STATUS(request), "ucx: ucp_am_send_nbx");
  }
  sending.in_ucx = request != nullptr;
  if (sending.in_ucx) ++endpoint.requests;
  return absl::OkStatus();
}

void UcxMessages::OnSent(void* request, ucs_status_t status, void* argument) {
  auto& sending = *static_cast<Sending*>(argument);
  ucp_request_free(request);
  sending.in_ucx = false;
  sending.ucx_status = status;
  sending.owner->Complete(sending.endpoint);
  sending.owner->FinishIfOver(sending);
}

void UcxMessages::Complete(EndpointId endpoint) {
  if (UcxEndpoint* const found = endpoints_.Find(endpoint); found != nullptr) --found->requests;
}

absl::Status UcxMessages::WhyEnded(EndpointId endpoint, ucs_status_t otherwise) {
  const UcxEndpoint* const found = endpoints_.Find(endpoint);
  if (found != nullptr && found->ended) return *found->ended;
  return FromUcs(otherwise, "ucx");
}

void UcxMessages::FinishIfOver(Sending& sending) {
  if (sending.in_ucx) return;
  const UcxEndpoint* const endpoint = endpoints_.Find(sending.endpoint);
  const bool open = endpoint != nullptr && !endpoint->ended;
  const bool broken = sending.ucx_status != UCS_OK && sending.ucx_status != kRefused;
  if (!sending.answered && open && !broken) return;
  const absl::Status status =
      sending.answered ? sending.answer
                       : WhyEnded(sending.endpoint, broken ? sending.ucx_status : UCS_ERR_CANCELED);
  events_.push_back({FabricEvent::Kind::kSent, sending.tag, sending.endpoint, status});
  sending_.Give(sending.id);
}

absl::StatusOr<UcxMessages::Arrival> UcxMessages::Check(const void* header,
                                                        std::size_t header_bytes,
                                                        const ucp_am_recv_param_t& param) {
  UcxEndpoint* const endpoint = (param.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0
                                    ? endpoints_.FindOpen(param.reply_ep)
                                    : nullptr;
  if (endpoint == nullptr) return absl::CancelledError("ucx: the endpoint has ended");
  Arrival arrival;
  arrival.endpoint = endpoint;
  arrival.announced = (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  absl::StatusOr<ParsedHeader> parsed =
      ParseWireHeader({static_cast<const std::byte*>(header), header_bytes});
  if (parsed.ok() && parsed->prefix.nonce != endpoint->nonce) {
    parsed = absl::PermissionDeniedError("ucx: a message that does not know this fabric's address");
  }
  if (parsed.ok()) {
    if (const absl::Status lane = endpoints_.CheckLane(*endpoint); !lane.ok()) parsed = lane;
  }
  if (!parsed.ok()) {
    offenders_.emplace_back(endpoint->id, parsed.status());
    return parsed.status();
  }
  if (endpoint->lane->path == FabricPath::kShm) ++shm_arrivals_;
  arrival.header = *parsed;
  return arrival;
}

// NOLINTNEXTLINE(readability-function-size): the signature is UCX's.
ucs_status_t UcxMessages::OnMessage(void* argument,
                                    const void* header,
                                    std::size_t header_bytes,
                                    void* data,
                                    std::size_t bytes,
                                    const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<UcxMessages*>(argument);
  absl::StatusOr<Arrival> arrival = self.Check(header, header_bytes, *param);
  if (!arrival.ok()) {
    return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 ? kRefused : UCS_OK;
  }
  arrival->data = data;
  arrival->bytes = bytes;
  return self.Offer(*arrival);
}

ucs_status_t UcxMessages::Offer(const Arrival& arrival) {
  const auto [id, held] = held_.Take();
  held.endpoint = arrival.endpoint->id;
  held.message = arrival.header.prefix.message;
  held.bytes = arrival.bytes;
  held.descriptor = nullptr;
  held.offered = true;
  const absl::StatusOr<std::optional<Landing>> decision = Ask(arrival, AnnouncementId(id));
  held.offered = false;
  absl::Status refusal = decision.status();
  if (decision.ok() && decision->has_value()) {
    refusal = LandNow(arrival, held, **decision);
    if (refusal.ok()) {
      held_.Give(id);
      return arrival.announced ? UCS_INPROGRESS : UCS_OK;
    }
  } else if (decision.ok() && !arrival.endpoint->ended) {
    return Keep(arrival, held);
  }
  Answer(held.endpoint, held.message, refusal);
  held_.Give(id);
  return arrival.announced ? kRefused : UCS_OK;
}

absl::StatusOr<std::optional<Landing>> UcxMessages::Ask(const Arrival& arrival, AnnouncementId id) {
  arrival.endpoint->shown = true;
  if (!receiver_) return absl::UnavailableError("fabric: no receiver is set");
  if (arrival.bytes > traits_.max_message_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("fabric: a payload of ", arrival.bytes,
                                                   " bytes, want at most ",
                                                   traits_.max_message_bytes));
  }
  return receiver_({id, arrival.endpoint->id, arrival.header.rest, arrival.bytes});
}

absl::Status UcxMessages::LandNow(const Arrival& arrival,
                                  const Held& held,
                                  const Landing& landing) {
  const absl::StatusOr<std::span<std::byte>> place =
      arrival.endpoint->ended ? *arrival.endpoint->ended  // by the receiver itself
                              : ResolveLanding(regions_, landing, arrival.bytes);
  if (!place.ok()) {
    events_.push_back({FabricEvent::Kind::kReceived, landing.tag, held.endpoint, place.status()});
    return place.status();
  }
  if (arrival.announced) {
    LandAnnounced(held, arrival.data, {*place, landing.tag});
  } else {
    LandEager(held, {static_cast<const std::byte*>(arrival.data), arrival.bytes},
              {*place, landing.tag});
  }
  return absl::OkStatus();
}

ucs_status_t UcxMessages::Keep(const Arrival& arrival, Held& held) {
  if (arrival.announced) {
    held.descriptor = arrival.data;
    return UCS_INPROGRESS;
  }
  const auto* const bytes = static_cast<const std::byte*>(arrival.data);
  held.eager.assign(bytes, bytes + arrival.bytes);
  return UCS_OK;
}

UcxMessages::Receiving& UcxMessages::Begin(const Held& held, std::uint64_t tag) {
  const auto [id, receiving] = receiving_.Take();
  static_cast<Operation&>(receiving) = {this, id, held.endpoint, tag};
  receiving.message = held.message;
  return receiving;
}

void UcxMessages::LandEager(const Held& held,
                            std::span<const std::byte> payload,
                            const Place& place) {
  if (!payload.empty()) std::memcpy(place.memory.data(), payload.data(), payload.size());
  FinishReceive(Begin(held, place.tag), UCS_OK);
}

void UcxMessages::LandAnnounced(const Held& held, void* descriptor, const Place& place) {
  Receiving& receiving = Begin(held, place.tag);
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.cb.recv_am = &UcxMessages::OnReceived;
  params.user_data = &receiving;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(worker_, descriptor, place.memory.data(), place.memory.size(), &params);
  if (!UCS_PTR_IS_PTR(request)) return FinishReceive(receiving, UCS_PTR_RAW_STATUS(request));
  ++endpoints_.Find(held.endpoint)->requests;
}

void UcxMessages::OnReceived(void* request,
                             ucs_status_t status,
                             std::size_t /*bytes*/,
                             void* argument) {
  auto& receiving = *static_cast<Receiving*>(argument);
  ucp_request_free(request);
  receiving.owner->Complete(receiving.endpoint);
  receiving.owner->FinishReceive(receiving, status);
}

void UcxMessages::FinishReceive(const Receiving& receiving, ucs_status_t status) {
  const absl::Status result =
      status == UCS_OK ? absl::OkStatus() : WhyEnded(receiving.endpoint, status);
  events_.push_back({FabricEvent::Kind::kReceived, receiving.tag, receiving.endpoint, result});
  Answer(receiving.endpoint, receiving.message, result);
  receiving_.Give(receiving.id);
}

void UcxMessages::Answer(EndpointId endpoint, std::uint64_t message, const absl::Status& status) {
  UcxEndpoint* const to = endpoints_.Find(endpoint);
  if (to == nullptr || to->ended) return;  // the end of the endpoint is the sender's answer
  const auto [id, answering] = answering_.Take();
  static_cast<Operation&>(answering) = {this, id, endpoint, 0};
  const absl::string_view text = status.message().substr(0, kMaxAnswerTextBytes);
  answering.header.Assign({to->nonce, message, static_cast<std::uint64_t>(status.raw_code())},
                          AsBytes(text));
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &UcxMessages::OnAnswerSent;
  params.user_data = &answering;
  const std::span<const std::byte> wire = answering.header.bytes();
  const ucs_status_ptr_t request = ucp_am_send_nbx(to->ep, static_cast<unsigned>(WireKind::kAnswer),
                                                   wire.data(), wire.size(), nullptr, 0, &params);
  if (UCS_PTR_IS_PTR(request)) {
    ++to->requests;
    return;
  }
  answering_.Give(id);
  if (UCS_PTR_IS_ERR(request)) {
    offenders_.emplace_back(endpoint, FromUcs(UCS_PTR_STATUS(request), "ucx: sending an answer"));
  }
}

void UcxMessages::OnAnswerSent(void* request, ucs_status_t /*status*/, void* argument) {
  // An answer fails only with its endpoint, which says so by itself.
  auto& answering = *static_cast<Answering*>(argument);
  ucp_request_free(request);
  answering.owner->Complete(answering.endpoint);
  answering.owner->answering_.Give(answering.id);
}

// NOLINTNEXTLINE(readability-function-size): the signature is UCX's.
ucs_status_t UcxMessages::OnAnswer(void* argument,
                                   const void* header,
                                   std::size_t header_bytes,
                                   void* /*data*/,
                                   std::size_t /*bytes*/,
                                   const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<UcxMessages*>(argument);
  const absl::StatusOr<Arrival> arrival = self.Check(header, header_bytes, *param);
  if (!arrival.ok()) return UCS_OK;
  Sending* const sending = self.sending_.Find(arrival->header.prefix.message);
  // Late, doubled or made up: only the endpoint that was sent to can answer, and once.
  if (sending == nullptr || sending->endpoint != arrival->endpoint->id || sending->answered) {
    return UCS_OK;
  }
  sending->answered = true;
  sending->answer = AnswerStatus(arrival->header);
  self.FinishIfOver(*sending);
  return UCS_OK;
}

absl::Status UcxMessages::Accept(AnnouncementId id, const Landing& landing) {
  Held* const held = held_.Find(id.value());
  if (held == nullptr || held->offered) return NotHeld(id);
  WB_ASSIGN_OR_RETURN(const std::span<std::byte> place,
                      ResolveLanding(regions_, landing, held->bytes));
  if (held->descriptor != nullptr) {
    LandAnnounced(*held, held->descriptor, {place, landing.tag});
  } else {
    LandEager(*held, held->eager, {place, landing.tag});
  }
  held_.Give(id.value());
  return absl::OkStatus();
}

absl::Status UcxMessages::Refuse(AnnouncementId id, const absl::Status& reason) {
  Held* const held = held_.Find(id.value());
  if (held == nullptr || held->offered) return NotHeld(id);
  Answer(held->endpoint, held->message, reason);
  // UCX tells the sender's UCX that all went well; the answer says how it was.
  if (held->descriptor != nullptr) ucp_am_data_release(worker_, held->descriptor);
  held_.Give(id.value());
  return absl::OkStatus();
}

void UcxMessages::EndOperations(const UcxEndpoint& endpoint) {
  held_.ForEach([&](std::uint64_t id, Held& held) {
    if (held.endpoint != endpoint.id || held.offered) return;
    if (held.descriptor != nullptr) ucp_am_data_release(worker_, held.descriptor);
    held_.Give(id);
  });
  sending_.ForEach([&](std::uint64_t /*id*/, Sending& sending) {
    if (sending.endpoint == endpoint.id) FinishIfOver(sending);
  });
}

void UcxMessages::TakeEvents(std::vector<FabricEvent>& events) {
  for (FabricEvent& event : events_) events.push_back(std::move(event));
  events_.clear();
}

}  // namespace wb
