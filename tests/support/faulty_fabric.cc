#include "tests/support/faulty_fabric.h"

#include <utility>

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

absl::Status FaultyFabric::Send(EndpointId endpoint,
                                std::span<const std::byte> header,
                                const MemoryRef& payload,
                                std::uint64_t tag) {
  if (!send_status_.ok()) return send_status_;
  return inner_->Send(endpoint, header, payload, tag);
}

absl::Status FaultyFabric::Accept(AnnouncementId id, const Landing& landing) {
  if (const auto held = held_.find(id); held != held_.end()) Note(held->second, landing);
  return inner_->Accept(id, landing);
}

bool FaultyFabric::Progress(std::vector<FabricEvent>& events) {
  const bool any = inner_->Progress(withheld_);
  if (withhold_) return any;
  for (FabricEvent& event : withheld_) {
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
