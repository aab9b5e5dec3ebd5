#include "tests/support/faulty_fabric.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/base/status_macros.h"

namespace wb::test {

void FaultyFabric::SetReceiver(Receiver receiver) {
  receiver_ = std::move(receiver);
  inner_->SetReceiver(
      [this](const Announcement& announcement) { return OnAnnouncement(announcement); });
}

absl::StatusOr<std::optional<Landing>> FaultyFabric::OnAnnouncement(
    const Announcement& announcement) {
  if (announcement.bytes == 0) return receiver_(announcement);
  const std::uint64_t payload = payloads_++;
  if (faults_.drop.contains(payload)) return std::nullopt;
  if (hold_where_ && hold_where_(payload, announcement.from)) {
    unshown_.push_back({announcement.id, announcement.from, payload, announcement.bytes,
                        Bytes(announcement.header.begin(), announcement.header.end())});
    return std::nullopt;
  }
  return Show(payload, announcement);
}

absl::StatusOr<std::optional<Landing>> FaultyFabric::Show(std::uint64_t payload,
                                                          const Announcement& announcement) {
  absl::StatusOr<std::optional<Landing>> landing = receiver_(announcement);
  if (!landing.ok()) return landing;
  if (landing->has_value()) {
    Note(payload, **landing);
  } else {
    held_.emplace(announcement.id, payload);
  }
  return landing;
}

void FaultyFabric::Note(std::uint64_t payload, const Landing& landing) {
  if (faults_.corrupt.contains(payload)) to_be_corrupted_.emplace(landing.tag, landing.memory);
}

void FaultyFabric::Release() {
  hold_where_ = nullptr;
  for (const Unshown& held : std::exchange(unshown_, {})) {
    const auto landing = Show(held.payload, {held.id, held.from, held.header, held.bytes});
    if (!landing.ok()) {
      static_cast<void>(inner_->Refuse(held.id, landing.status()));
    } else if (landing->has_value()) {
      const absl::Status accepted = inner_->Accept(held.id, **landing);
      if (!accepted.ok()) {
        withheld_.push_back({FabricEvent::Kind::kReceived, (*landing)->tag, {}, accepted});
      }
    }
  }
}

void FaultyFabric::Forget(EndpointId endpoint) {
  std::erase_if(unshown_, [endpoint](const Unshown& held) { return held.from == endpoint; });
}

void FaultyFabric::CloseForced(EndpointId endpoint) {
  SendLate();  // its event follows like any other's
  Forget(endpoint);
  inner_->CloseForced(endpoint);
}

absl::Status FaultyFabric::SendPayload(const Unsent& send) {
  const std::uint64_t number = sends_++;
  if (send_faults_.fail.contains(number)) {
    return absl::InternalError(absl::StrCat("payload ", number, " is not to be sent"));
  }
  if (send_faults_.late.contains(number)) {
    unsent_ = send;
    return absl::OkStatus();
  }
  WB_RETURN_IF_ERROR(inner_->Send(send.endpoint, send.header, send.payload, send.tag));
  if (send_faults_.twice.contains(number) &&
      inner_->Send(send.endpoint, send.header, send.payload, send.tag).ok()) {
    twins_[send.tag];
  }
  SendLate();
  return absl::OkStatus();
}

void FaultyFabric::SendLate() {
  const std::optional<Unsent> late = std::exchange(unsent_, std::nullopt);
  if (!late.has_value()) return;
  const absl::Status sent = inner_->Send(late->endpoint, late->header, late->payload, late->tag);
  if (!sent.ok()) withheld_.push_back({FabricEvent::Kind::kSent, late->tag, {}, sent});
}

bool FaultyFabric::AwaitsTwin(FabricEvent& event) {
  if (event.kind != FabricEvent::Kind::kSent) return false;
  const auto twin = twins_.find(event.tag);
  if (twin == twins_.end()) return false;
  if (!twin->second.has_value()) {
    twin->second = std::move(event);
    return true;
  }
  if (twin->second->status.ok()) event = *std::move(twin->second);
  twins_.erase(twin);
  return false;
}

absl::Status FaultyFabric::Send(EndpointId endpoint,
                                std::span<const std::byte> header,
                                const MemoryRef& payload,
                                std::uint64_t tag) {
  if (!send_status_.ok()) return send_status_;
  if (payload.bytes == 0) return inner_->Send(endpoint, header, payload, tag);
  return SendPayload({endpoint, Bytes(header.begin(), header.end()), payload, tag});
}

absl::Status FaultyFabric::Accept(AnnouncementId id, const Landing& landing) {
  if (const auto held = held_.find(id); held != held_.end()) Note(held->second, landing);
  return inner_->Accept(id, landing);
}

bool FaultyFabric::Progress(std::vector<FabricEvent>& events) {
  const bool any = inner_->Progress(withheld_);
  if (withhold_) return any;
  for (FabricEvent& event : withheld_) {
    if (AwaitsTwin(event)) continue;
    if (event.kind == FabricEvent::Kind::kEndpointFailed) Forget(event.endpoint);
    if (event.kind == FabricEvent::Kind::kReceived && event.status.ok()) {
      if (const auto hit = to_be_corrupted_.find(event.tag); hit != to_be_corrupted_.end()) {
        const std::span<std::byte> memory = regions_.ResolveWritable(hit->second).value();
        memory[memory.size() / 2] ^= std::byte{0x10};
      }
    }
    events.push_back(std::move(event));
  }
  const bool delivered = !withheld_.empty();
  withheld_.clear();
  return any || delivered;
}

}  // namespace wb::test
