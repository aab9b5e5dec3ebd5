#include "transport/loopback/loopback_fabric.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "planner/base/status_macros.h"
#include "transport/fabric_checks.h"

namespace wb {
namespace {

constexpr char kAddressPrefix[] = "loopback:";

void Signal(int fd) {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the reader wakes all the same.
  static_cast<void>(!write(fd, &one, sizeof(one)));
}

absl::Status NoEndpoint(EndpointId endpoint) {
  return absl::FailedPreconditionError(
      absl::StrCat("fabric: endpoint ", endpoint.value(), " is not open"));
}

}  // namespace

LoopbackNetwork::Mailbox* LoopbackNetwork::FindMailbox(std::uint64_t fabric) {
  const auto found = mailboxes_.find(fabric);
  return found == mailboxes_.end() ? nullptr : found->second.get();
}

LoopbackNetwork::Mailbox* LoopbackNetwork::OtherEnd(std::uint64_t link, std::uint64_t fabric) {
  const auto found = links_.find(link);
  if (found == links_.end()) return nullptr;
  const Link& ends = found->second;
  return FindMailbox(ends.from == fabric ? ends.to : ends.from);
}

void LoopbackNetwork::Break(std::uint64_t link, std::uint64_t by_fabric) {
  if (Mailbox* const other = OtherEnd(link, by_fabric); other != nullptr) {
    other->broken_links.push_back(link);
    Signal(other->wake_fd);
  }
  links_.erase(link);
}

absl::StatusOr<std::unique_ptr<LoopbackFabric>> LoopbackFabric::Create(LoopbackNetwork& network,
                                                                       const RegionTable& regions) {
  FdHandle wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return absl::ErrnoToStatus(errno, "loopback: eventfd");
  return std::unique_ptr<LoopbackFabric>(new LoopbackFabric(network, regions, std::move(wake)));
}

LoopbackFabric::LoopbackFabric(LoopbackNetwork& network, const RegionTable& regions, FdHandle wake)
    : network_(network),
      regions_(regions),
      wake_(std::move(wake)),
      traits_{"loopback", kMaxHeaderBytes, kMaxMessageBytes},
      lane_{FabricPath::kTcp, "loopback", "loopback", kMaxMessageBytes} {
  const MutexLock lock(network_.mu_);
  self_ = network_.next_fabric_++;
  auto mailbox = std::make_unique<LoopbackNetwork::Mailbox>();
  mailbox->wake_fd = wake_.get();
  network_.mailboxes_.emplace(self_, std::move(mailbox));
  address_ = absl::StrCat(kAddressPrefix, self_);
}

LoopbackFabric::~LoopbackFabric() {
  const MutexLock lock(network_.mu_);
  std::vector<std::uint64_t> mine;
  for (const auto& [link, ends] : network_.links_) {
    if (ends.from == self_ || ends.to == self_) mine.push_back(link);
  }
  for (const std::uint64_t link : mine) network_.Break(link, self_);
  network_.mailboxes_.erase(self_);
}

absl::StatusOr<EndpointId> LoopbackFabric::Connect(const std::string& address) {
  absl::string_view number(address.data(), address.size());
  std::uint64_t peer = 0;
  if (!absl::ConsumePrefix(&number, kAddressPrefix) || !absl::SimpleAtoi(number, &peer)) {
    return absl::InvalidArgumentError("loopback: not an address of a loopback fabric");
  }
  const EndpointId endpoint(next_endpoint_++);
  const MutexLock lock(network_.mu_);
  if (network_.FindMailbox(peer) == nullptr) {
    due_.push_back({FabricEvent::Kind::kEndpointFailed, 0, endpoint,
                    absl::UnavailableError(absl::StrCat("loopback: no fabric ", peer))});
    return endpoint;
  }
  const std::uint64_t link = network_.next_link_++;
  network_.links_.emplace(link, LoopbackNetwork::Link{self_, peer});
  link_of_.emplace(endpoint, link);
  endpoint_of_.emplace(link, endpoint);
  return endpoint;
}

absl::Status LoopbackFabric::Send(EndpointId endpoint,
                                  std::span<const std::byte> header,
                                  const MemoryRef& payload,
                                  std::uint64_t tag) {
  WB_RETURN_IF_ERROR(CheckSendSizes(traits_, header.size(), payload.bytes));
  WB_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, ResolvePayload(regions_, payload));
  const auto link = link_of_.find(endpoint);
  if (link == link_of_.end()) return NoEndpoint(endpoint);
  const MutexLock lock(network_.mu_);
  LoopbackNetwork::Mailbox* const peer = network_.OtherEnd(link->second, self_);
  if (peer == nullptr) return NoEndpoint(endpoint);
  const std::uint64_t operation = next_operation_++;
  sending_.emplace(operation, Sending{endpoint, tag});
  peer->messages.push_back({link->second, operation, {header.begin(), header.end()}, bytes});
  Signal(peer->wake_fd);
  return absl::OkStatus();
}

absl::Status LoopbackFabric::Accept(AnnouncementId id, const Landing& landing) {
  const auto held = held_.find(id);
  if (held == held_.end()) return NotHeld(id);
  WB_ASSIGN_OR_RETURN(const std::span<std::byte> place,
                      ResolveLanding(regions_, landing, held->second.payload.size()));
  const LoopbackNetwork::Message message = std::move(held->second);
  held_.erase(held);
  Deliver(message, place, landing.tag);
  return absl::OkStatus();
}

absl::Status LoopbackFabric::Refuse(AnnouncementId id, absl::Status reason) {
  const auto held = held_.find(id);
  if (held == held_.end()) return NotHeld(id);
  Answer(held->second, std::move(reason));
  held_.erase(held);
  return absl::OkStatus();
}

void LoopbackFabric::CloseForced(EndpointId endpoint) {
  const auto link = link_of_.find(endpoint);
  if (link == link_of_.end()) return;
  {
    const MutexLock lock(network_.mu_);
    network_.Break(link->second, self_);
  }
  EndOperations(endpoint, absl::CancelledError(absl::StrCat("fabric: endpoint ", endpoint.value(),
                                                            " was closed by its owner")));
}

bool LoopbackFabric::Progress(std::vector<FabricEvent>& events) {
  std::uint64_t count = 0;
  static_cast<void>(!read(wake_.get(), &count, sizeof(count)));
  LoopbackNetwork::Mailbox arrived;
  {
    const MutexLock lock(network_.mu_);
    LoopbackNetwork::Mailbox& mailbox = *network_.FindMailbox(self_);
    arrived.messages.swap(mailbox.messages);
    arrived.answers.swap(mailbox.answers);
    arrived.broken_links.swap(mailbox.broken_links);
  }
  for (LoopbackNetwork::Answer& answer : arrived.answers) {
    const auto sent = sending_.extract(answer.operation);
    if (sent.empty()) continue;  // it ended with its endpoint
    due_.push_back({FabricEvent::Kind::kSent, sent.mapped().tag, sent.mapped().endpoint,
                    std::move(answer.status)});
  }
  for (const std::uint64_t link : arrived.broken_links) {
    const auto endpoint = endpoint_of_.find(link);
    if (endpoint == endpoint_of_.end()) continue;  // closed here too, or never heard of
    const EndpointId failed = endpoint->second;
    const absl::Status status = absl::UnavailableError("loopback: the peer closed or is gone");
    EndOperations(failed, status);
    due_.push_back({FabricEvent::Kind::kEndpointFailed, 0, failed, status});
  }
  for (LoopbackNetwork::Message& message : arrived.messages) Announce(std::move(message));
  const bool any = !due_.empty() || !arrived.messages.empty();
  for (FabricEvent& event : due_) events.push_back(std::move(event));
  due_.clear();
  return any;
}

absl::StatusOr<bool> LoopbackFabric::Arm() {
  const MutexLock lock(network_.mu_);
  const LoopbackNetwork::Mailbox& mailbox = *network_.FindMailbox(self_);
  return due_.empty() && mailbox.messages.empty() && mailbox.answers.empty() &&
         mailbox.broken_links.empty();
}

EndpointId LoopbackFabric::EndpointOf(std::uint64_t link) {
  const auto [found, added] = endpoint_of_.try_emplace(link, EndpointId(next_endpoint_));
  if (added) {
    ++next_endpoint_;
    link_of_.emplace(found->second, link);
  }
  return found->second;
}

const LaneTraits* LoopbackFabric::lane(EndpointId endpoint) const {
  return link_of_.contains(endpoint) ? &lane_ : nullptr;
}

bool LoopbackFabric::IsOpen(std::uint64_t link) {
  const MutexLock lock(network_.mu_);
  return network_.links_.contains(link);
}

void LoopbackFabric::Announce(LoopbackNetwork::Message&& message) {
  if (!IsOpen(message.link)) return;  // its sender has had its error
  if (!receiver_) return Answer(message, absl::UnavailableError("fabric: no receiver is set"));
  const AnnouncementId id(next_announcement_++);
  const EndpointId from = EndpointOf(message.link);
  const auto bytes = static_cast<std::uint64_t>(message.payload.size());
  const std::vector<std::byte> header = message.header;
  held_.emplace(id, std::move(message));  // before the call, which may close the endpoint
  const absl::StatusOr<std::optional<Landing>> decision = receiver_({id, from, header, bytes});
  if (!decision.ok()) {
    // NOT_FOUND: the receiver has closed the endpoint, which told the sender more.
    static_cast<void>(Refuse(id, decision.status()));
    return;
  }
  if (!decision->has_value()) return;
  const Landing& landing = **decision;
  if (const absl::Status accepted = Accept(id, landing); !accepted.ok()) {
    static_cast<void>(Refuse(id, accepted));
    due_.push_back({FabricEvent::Kind::kReceived, landing.tag, from, accepted});
  }
}

void LoopbackFabric::Deliver(const LoopbackNetwork::Message& message,
                             std::span<std::byte> place,
                             std::uint64_t tag) {
  const EndpointId endpoint = EndpointOf(message.link);
  {
    const MutexLock lock(network_.mu_);
    if (LoopbackNetwork::Mailbox* const sender = network_.OtherEnd(message.link, self_);
        sender != nullptr) {
      if (!place.empty()) std::memcpy(place.data(), message.payload.data(), place.size());
      sender->answers.push_back({message.operation, absl::OkStatus()});
      Signal(sender->wake_fd);
      due_.push_back({FabricEvent::Kind::kReceived, tag, endpoint, absl::OkStatus()});
      return;
    }
  }
  due_.push_back({FabricEvent::Kind::kReceived, tag, endpoint,
                  absl::UnavailableError("loopback: the peer closed or is gone")});
}

void LoopbackFabric::Answer(const LoopbackNetwork::Message& message, absl::Status status) {
  const MutexLock lock(network_.mu_);
  LoopbackNetwork::Mailbox* const sender = network_.OtherEnd(message.link, self_);
  if (sender == nullptr) return;  // the break has told it
  sender->answers.push_back({message.operation, std::move(status)});
  Signal(sender->wake_fd);
}

void LoopbackFabric::EndOperations(EndpointId endpoint, const absl::Status& status) {
  const auto link = link_of_.extract(endpoint);
  if (link.empty()) return;
  endpoint_of_.erase(link.mapped());
  for (auto it = sending_.begin(); it != sending_.end();) {
    const auto current = it++;
    if (current->second.endpoint != endpoint) continue;
    due_.push_back({FabricEvent::Kind::kSent, current->second.tag, endpoint, status});
    sending_.erase(current);
  }
  for (auto it = held_.begin(); it != held_.end();) {
    const auto current = it++;
    if (current->second.link == link.mapped()) held_.erase(current);
  }
}

}  // namespace wb
